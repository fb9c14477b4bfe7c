package weave

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Author is who has named targets of a pipeline, as RBAC knows somebody.
type Author struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
	// Targets are those that are his, each as NAMESPACE of the logical cluster or CLUSTER/NAMESPACE.
	Targets []string `json:"targets"`
}

// as reports whether two are the same person, with the same groups.
func (a Author) as(b Author) bool { return a.User == b.User && slices.Equal(a.Groups, b.Groups) }

// at is how an author has a target.
func (t Target) at() string { return strings.TrimPrefix(t.Cluster()+"/"+t.Namespace, "/") }

// Authors are who has named the targets of a pipeline. A pipeline that was written before that was noted has none, and neither has one whose note does not read.
func Authors(p *Pipeline) []Author {
	var out []Author
	if json.Unmarshal([]byte(p.Annotations[v1alpha1.AnnotationAuthors]), &out) != nil {
		return nil
	}
	return out
}

// AuthorOf returns who has named a target, false if that is not known.
func AuthorOf(authors []Author, t Target) (Author, bool) {
	i := slices.IndexFunc(authors, func(a Author) bool { return slices.Contains(a.Targets, t.at()) })
	if i < 0 {
		return Author{}, false
	}
	return authors[i], true
}

// Shown are the rights to list what is shown of a target, which is what its author needs.
func (p *Pipeline) Shown(t Target) (out []Right) {
	for _, resource := range p.resources() {
		out = append(out, Right{Verb: "list", Resource: resource, Namespace: t.Namespace})
	}
	return out
}

// Note returns who has named the targets of a pipeline once somebody has made before into after, before being nil for a new one. Whoever names a target, or
// another app, answers for what is shown there from then on. What was there stays with whoever has named it, as long as he may still see it: otherwise it goes to
// whoever writes the pipeline, if he may. It is not known of targets that were there before it was noted.
func Note(before, after *Pipeline, by Author, may func(Author, Right) bool) string {
	var had []Author
	var there []string
	if before != nil && sameApp(before, after) {
		had = Authors(before)
		before.targets(func(t Target) { there = append(there, t.at()) })
	}
	shows := func(a Author, t Target) bool {
		return !slices.ContainsFunc(after.Shown(t), func(r Right) bool { return !may(a, r) })
	}
	var out []Author
	after.targets(func(t Target) {
		author, known := AuthorOf(had, t)
		switch {
		case !slices.Contains(there, t.at()):
			author = by
		case !known:
			return
		case !shows(author, t) && shows(by, t):
			author = by
		}
		author.Targets = []string{t.at()}
		i := slices.IndexFunc(out, author.as)
		switch {
		case i < 0:
			out = append(out, author)
		case !slices.Contains(out[i].Targets, t.at()):
			out[i].Targets = append(out[i].Targets, t.at())
		}
	})
	if len(out) == 0 {
		return ""
	}
	text, err := json.Marshal(out)
	if err != nil { // of strings there is nothing that could fail
		return ""
	}
	return string(text)
}

// sameApp reports whether two show the same of a target.
func sameApp(a, b *Pipeline) bool {
	if a.Spec.AppRef == nil || b.Spec.AppRef == nil {
		return a.Spec.AppRef == b.Spec.AppRef
	}
	return a.Spec.AppRef.Kind == b.Spec.AppRef.Kind && a.Spec.AppRef.Name == b.Spec.AppRef.Name && slices.Equal(a.resources(), b.resources())
}

// targets shows all targets of a pipeline, in order.
func (p *Pipeline) targets(show func(Target)) {
	for _, e := range p.Spec.Environments {
		for _, t := range e.Targets {
			show(t)
		}
	}
}

// String names a right for people.
func (r Right) String() string {
	out := fmt.Sprintf("%s %s", r.Verb, r.Resource)
	if r.Name != "" {
		out += fmt.Sprintf(" %q", r.Name)
	}
	if r.Namespace != "" {
		out += fmt.Sprintf(" in namespace %q", r.Namespace)
	}
	return out
}
