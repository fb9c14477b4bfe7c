package rights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Missing asks a cluster what the client's credential may do there, and returns what it lacks of some rights: a line such as
// "list,watch endpoints" for each resource or path, in the order of the rows. One request tells for all of them; where the cluster cannot
// answer it for sure, what seems to be missing is asked for one by one.
func Missing(ctx context.Context, client kubernetes.Interface, of []Right) ([]string, error) {
	// A role that is bound in the whole cluster shows in every namespace.
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceDefault}}
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask which rights the credential has: %w", err)
	}
	lacks := lacking(of, review.Status)
	if review.Status.Incomplete {
		if lacks, err = confirmed(ctx, client, lacks); err != nil {
			return nil, err
		}
	}
	var lines []string
	for _, l := range lacks {
		lines = append(lines, strings.Join(l.verbs, ",")+" "+l.target())
	}
	return lines, nil
}

// lack is what is missing about one resource or path.
type lack struct {
	group, resource, path string
	verbs                 []string
}

// target is the resource as people write it, with its group, or the path.
func (l lack) target() string {
	if l.path != "" || l.group == "" {
		return l.path + l.resource
	}
	plural, sub, nested := strings.Cut(l.resource, "/")
	if nested {
		return plural + "." + l.group + "/" + sub
	}
	return plural + "." + l.group
}

// lacking returns what the rules that a credential has leave out.
func lacking(of []Right, has authorizationv1.SubjectRulesReviewStatus) []lack {
	var out []lack
	for _, right := range of {
		for _, resource := range right.Resources {
			l := lack{group: right.Group, resource: resource}
			for _, verb := range right.Verbs {
				if !slices.ContainsFunc(has.ResourceRules, func(r authorizationv1.ResourceRule) bool {
					return len(r.ResourceNames) == 0 && holds(r.Verbs, verb) && holds(r.APIGroups, right.Group) && holds(r.Resources, resource)
				}) {
					l.verbs = append(l.verbs, verb)
				}
			}
			out = append(out, l)
		}
		for _, path := range right.Paths {
			l := lack{path: path}
			for _, verb := range right.Verbs {
				if !slices.ContainsFunc(has.NonResourceRules, func(r authorizationv1.NonResourceRule) bool {
					return holds(r.Verbs, verb) && slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool { return coversPath(pattern, path) })
				}) {
					l.verbs = append(l.verbs, verb)
				}
			}
			out = append(out, l)
		}
	}
	return slices.DeleteFunc(out, func(l lack) bool { return len(l.verbs) == 0 })
}

// split cuts the subresource off.
func split(resource string) (plural, sub string) {
	plural, sub, _ = strings.Cut(resource, "/")
	return plural, sub
}

func holds(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// coversPath reports whether a pattern, which may end with a star, covers a path, which may be such a pattern itself.
func coversPath(pattern, path string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return pattern == path || open && strings.HasPrefix(path, prefix)
}

// confirmed returns what of some lacks the cluster refuses when it is asked by itself.
func confirmed(ctx context.Context, client kubernetes.Interface, lacks []lack) ([]lack, error) {
	var out []lack
	for _, l := range lacks {
		refused := lack{group: l.group, resource: l.resource, path: l.path}
		for _, verb := range l.verbs {
			allowed, err := l.ask(ctx, client, verb)
			if err != nil {
				return nil, err
			}
			if !allowed {
				refused.verbs = append(refused.verbs, verb)
			}
		}
		if len(refused.verbs) > 0 {
			out = append(out, refused)
		}
	}
	return out, nil
}

func (l lack) ask(ctx context.Context, client kubernetes.Interface, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	if l.path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: l.path, Verb: verb}
	} else {
		resource, sub := split(l.resource)
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: verb, Group: l.group, Resource: resource, Subresource: sub}
	}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the right to %s %s: %w", verb, l.target(), err)
	}
	return review.Status.Allowed, nil
}
