package cluster

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// Right is one row of a table of rights.
type Right = rights.Right

// SyncerRights returns everything that Manifold's credential may do in a cluster, custom resources aside.
func SyncerRights() []Right { return rights.Syncer() }

// ownRights returns the syncer's rights to take the role that reads Secrets, and to read what joining has made for it, by name, so that it can
// be compared with what should be there.
func ownRights(logical types.UID) []Right {
	const why = "whether its own rights are what they should be"
	get, name := []string{"get"}, syncerName(logical)
	return append(rights.Taking(string(logical)), []Right{
		{
			Why: why, Group: rbacv1.GroupName, Resources: []string{"clusterroles", "clusterrolebindings"},
			Names: []string{name, kindsName(logical), prioritiesName(logical), volumesName(logical), rights.SecretsRole(string(logical)), tellingName(logical)}, Verbs: get,
		},
		{
			Why: why, Group: "admissionregistration.k8s.io", Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			Names: []string{name, accountsName(logical), prioritiesName(logical), volumesName(logical)}, Verbs: get,
		},
		{Why: why, Group: rbacv1.GroupName, Resources: []string{"roles", "rolebindings"}, Names: []string{name, tellingName(logical)}, Verbs: get},
	}...)
}

// joinRights returns what the credential that joins a cluster needs beside the rights that it hands on, in order to make, and
// to take back, what joining makes there.
func joinRights() []Right {
	const rbac, admission = rbacv1.GroupName, "admissionregistration.k8s.io"
	manage := []string{"get", "create", "patch", "delete"}
	return []Right{
		{Why: "the system namespace", Resources: []string{"namespaces"}, Verbs: manage},
		{
			Why: "the syncer's identity", Resources: []string{"serviceaccounts"}, Verbs: manage,
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "what the syncer's token ends with", Resources: []string{"secrets"}, Verbs: []string{"list", "create", "delete"},
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "the syncer's token", Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"},
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "the rights to renew that, and to tell audits whose requests are", Group: rbac, Resources: []string{"roles", "rolebindings"}, Verbs: manage,
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{Why: "the syncer's role", Group: rbac, Resources: []string{"clusterroles", "clusterrolebindings"}, Verbs: manage},
		{
			Why: "the syncer's role in its own namespace", Group: rbac, Resources: []string{"roles", "rolebindings"}, Verbs: manage,
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "keeping the syncer out of the namespaces of the system", Group: admission,
			Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}, Verbs: manage,
		},
		{Why: "asking the logical cluster about pods", Group: admission, Resources: []string{"mutatingwebhookconfigurations"}, Verbs: manage},
	}
}

// grantRights returns the rights that let a credential hand on rights which it does not have itself.
func grantRights() []Right {
	return []Right{{
		Why: "handing on rights", Group: rbacv1.GroupName, Resources: []string{"clusterroles", "roles"}, Verbs: []string{"bind", "escalate"},
	}}
}

// policyRules turns rows into the rules of a ClusterRole.
func policyRules(rights []Right) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(rights))
	for _, r := range rights {
		rule := rbacv1.PolicyRule{Verbs: r.Verbs}
		if len(r.Paths) > 0 {
			rule.NonResourceURLs = r.Paths
		} else {
			rule.APIGroups, rule.Resources, rule.ResourceNames = []string{r.Group}, r.Resources, r.Names
		}
		rules = append(rules, rule)
	}
	return rules
}

// question is one right as an API server answers for it: a single verb on a single resource or path.
type question struct {
	verb, group, resource, path, namespace, name string
}

// questions splits rows into the single rights that they consist of, each once.
func questions(rights ...Right) []question {
	var all []question
	for _, r := range rights {
		names := r.Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range r.Verbs {
			for _, path := range r.Paths {
				all = append(all, question{verb: verb, path: path})
			}
			for _, resource := range r.Resources {
				for _, name := range names {
					all = append(all, question{verb: verb, group: r.Group, resource: resource, namespace: r.Namespace, name: name})
				}
			}
		}
	}
	seen := map[question]bool{}
	return slices.DeleteFunc(all, func(q question) bool {
		was := seen[q]
		seen[q] = true
		return was
	})
}

// target is what the question's verb is about, as people write it: resource.group, or the path.
func (q question) target() string {
	target := q.path
	if target == "" {
		target = q.resource
		if q.group != "" {
			plural, sub, _ := strings.Cut(q.resource, "/")
			target = plural + "." + q.group
			if sub != "" {
				target += "/" + sub
			}
		}
	}
	if q.name != "" {
		target += " " + q.name
	}
	if q.namespace != "" {
		target += fmt.Sprintf(" in namespace %s", q.namespace)
	}
	return target
}

// review is the question as an API server takes it.
func (q question) review() *authorizationv1.SelfSubjectAccessReview {
	spec := authorizationv1.SelfSubjectAccessReviewSpec{}
	if q.path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: q.path, Verb: q.verb}
	} else {
		resource, sub, _ := strings.Cut(q.resource, "/")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: q.verb, Group: q.group, Resource: resource, Subresource: sub, Namespace: q.namespace, Name: q.name,
		}
	}
	return &authorizationv1.SelfSubjectAccessReview{Spec: spec}
}

// summarise writes one line per target with all verbs that are asked of it, in the order of the questions.
func summarise(missing []question) []string {
	var order []string
	verbs := map[string][]string{}
	for _, q := range missing {
		if len(verbs[q.target()]) == 0 {
			order = append(order, q.target())
		}
		verbs[q.target()] = append(verbs[q.target()], q.verb)
	}
	lines := make([]string, 0, len(order))
	for _, target := range order {
		lines = append(lines, strings.Join(verbs[target], ",")+" "+target)
	}
	return lines
}
