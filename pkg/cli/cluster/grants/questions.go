package grants

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// Question is one right as an API server answers for it: a single verb on a single resource or path.
type Question struct {
	verb, group, resource, path, namespace, name string
}

// Questions splits rows into the single rights that they consist of, each once.
func Questions(of ...rights.Right) []Question {
	var all []Question
	for _, r := range of {
		names := r.Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range r.Verbs {
			for _, path := range r.Paths {
				all = append(all, Question{verb: verb, path: path})
			}
			for _, resource := range r.Resources {
				for _, name := range names {
					all = append(all, Question{verb: verb, group: r.Group, resource: resource, namespace: r.Namespace, name: name})
				}
			}
		}
	}
	seen := map[Question]bool{}
	return slices.DeleteFunc(all, func(q Question) bool {
		was := seen[q]
		seen[q] = true
		return was
	})
}

func (q Question) String() string { return q.verb + " " + q.target() }

// target is what the question's verb is about, as people write it: resource.group, or the path.
func (q Question) target() string {
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

// Review is the question as an API server takes it.
func (q Question) Review() *authorizationv1.SelfSubjectAccessReview {
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

// Summarise writes one line per target with all verbs that are asked of it, in the order of the questions.
func Summarise(missing []Question) []string {
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
