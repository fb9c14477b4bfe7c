package weave

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Right is what RBAC gives: something that may be done to the objects of a resource in a namespace, or to one of them.
type Right struct {
	Verb      string
	Resource  schema.GroupResource
	Namespace string
	// Name is empty for all of the namespace.
	Name string
}

// Need is a right that whoever writes a field of a pipeline must have: nobody sees or does by a pipeline what he could not without.
type Need struct {
	Path *field.Path
	Right
	// about is what else of the spec says what it is needed for.
	about seen
}

// seen is what of an app is shown, of a cluster.
type seen struct{ cluster, kind, name string }

// needed tells needs apart.
type needed struct {
	Right
	about seen
}

var (
	secrets         = schema.GroupResource{Resource: "secrets"}
	serviceAccounts = schema.GroupResource{Resource: "serviceaccounts"}
)

// Needs returns what whoever makes before into after needs, before being nil for a new pipeline. The status shows what is in the targets, so who adds one, or
// names another app, must be allowed to list it there. What a pull request or a direct promotion does is done with the credential of a Secret, or as a
// ServiceAccount, and all of the spec says what that is: so whoever changes any of it must be allowed to get the one, or to impersonate the other.
func Needs(before, after *Pipeline) []Need {
	had := map[needed]bool{}
	if before != nil {
		for _, need := range append(shown(before), keys(before)...) {
			had[needed{need.Right, need.about}] = true
		}
	}
	var out []Need
	named := map[Right]bool{}
	add := func(needs []Need, unless map[needed]bool) {
		for _, need := range needs {
			if !named[need.Right] && !unless[needed{need.Right, need.about}] {
				named[need.Right] = true
				out = append(out, need)
			}
		}
	}
	add(shown(after), had)
	add(keys(after), had)
	add(acted(after), nil)
	return out
}

// shown are the rights to list what is shown of the targets.
func shown(p *Pipeline) (out []Need) {
	about := seen{}
	if app := p.Spec.AppRef; app != nil {
		about.kind, about.name = app.Kind, app.Name
	}
	for i, e := range p.Spec.Environments {
		for j, t := range e.Targets {
			at := field.NewPath("spec", "environments").Index(i).Child("targets").Index(j).Child("namespace")
			about.cluster = t.Cluster()
			for _, resource := range p.resources() {
				out = append(out, Need{at, Right{Verb: "list", Resource: resource, Namespace: t.Namespace}, about})
			}
		}
	}
	return out
}

// resources are what may be shown of a target: the app, and what it comes down to, or whatever carries the label.
func (p *Pipeline) resources() []schema.GroupResource {
	if p.Spec.AppRef != nil {
		app, _ := WorkloadOf(*p.Spec.AppRef) // one that is none is refused before
		if app == deployments {
			return []schema.GroupResource{deployments.GroupResource()}
		}
		return []schema.GroupResource{deployments.GroupResource(), app.GroupResource()}
	}
	var out []schema.GroupResource
	for _, kind := range Workloads {
		out = append(out, kind.GroupResource())
	}
	return out
}

// promotions are all of a pipeline, with their paths.
func (p *Pipeline) promotions(visit func(of Promotion, path *field.Path)) {
	path := field.NewPath("spec")
	if p.Spec.Promotion != nil {
		visit(*p.Spec.Promotion, path.Child("promotion", "strategy"))
	}
	for i, e := range p.Spec.Environments {
		if e.Promotion != nil {
			visit(*e.Promotion, path.Child("environments").Index(i).Child("promotion", "strategy"))
		}
	}
}

// SigningSecret names the Secret that signs the calls about promotions to an environment: the one that its own strategy names, or else that of the pipeline. It is ""
// if none is named. The index is negative for no environment.
func (p *Pipeline) SigningSecret(index int) string {
	of := p.Spec.Promotion
	if index >= 0 {
		if to := p.PromotionOf(p.Spec.Environments[index]); to != nil && to.Strategy.SecretRef != nil {
			of = to
		}
	}
	if of == nil || of.Strategy.SecretRef == nil {
		return ""
	}
	return of.Strategy.SecretRef.Name
}

// secret is the right to a Secret of the pipeline's namespace.
func (p *Pipeline) secret(name string) Right { return Right{"get", secrets, p.Namespace, name} }

// keys are the rights to the keys that calls of webhooks are signed with: who holds one may promote.
func keys(p *Pipeline) (out []Need) {
	p.promotions(func(of Promotion, path *field.Path) {
		if ref := of.Strategy.SecretRef; ref != nil {
			out = append(out, Need{path.Child("secretRef", "name"), p.secret(ref.Name), seen{}})
		}
	})
	return out
}

// acted are the rights by which versions are promoted.
func acted(p *Pipeline) (out []Need) {
	p.promotions(func(of Promotion, path *field.Path) {
		for _, right := range p.actsBy(of) {
			at := path.Child("pull-request", "secretRef", "name")
			if right.Resource == serviceAccounts {
				at = path.Child("direct", "serviceAccountName")
			}
			out = append(out, Need{at, right, seen{}})
		}
	})
	return out
}

// actsBy are the rights by which versions are promoted in one way.
func (p *Pipeline) actsBy(of Promotion) (out []Right) {
	if by := of.Strategy.PullRequest; by != nil {
		out = append(out, p.secret(by.SecretRef.Name))
	}
	if by := of.Strategy.Direct; by != nil {
		out = append(out, Right{"impersonate", serviceAccounts, p.Namespace, by.ServiceAccountName})
	}
	return out
}
