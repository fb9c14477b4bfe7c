package weave

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Author is who has named targets of a pipeline, or what versions are promoted with, as RBAC knows somebody.
type Author struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
	// Targets are those that are his, each as NAMESPACE of the logical cluster or CLUSTER/NAMESPACE.
	Targets []string `json:"targets,omitempty"`
	// Uses are the Secrets and ServiceAccounts of the pipeline's namespace that he has it use, each as secrets/NAME or serviceaccounts/NAME.
	Uses []string `json:"uses,omitempty"`
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

// use is how an author has what a right is to.
func (r Right) use() string { return r.Resource.Resource + "/" + r.Name }

// userOf returns who has a pipeline use what a right is to, false if that is not known.
func userOf(authors []Author, r Right) (Author, bool) {
	i := slices.IndexFunc(authors, func(a Author) bool { return slices.Contains(a.Uses, r.use()) })
	if i < 0 {
		return Author{}, false
	}
	return authors[i], true
}

// Lost names a right that somebody has lost who has said what a pipeline is to do with it.
type Lost struct {
	Author
	Right
}

// LostTo returns the first right that has been lost by which versions are promoted to an environment, nil if none is known to be: to the credential of pull
// requests, or to act as the ServiceAccount of a direct promotion.
func (p *Pipeline) LostTo(index int, authors []Author, may func(Author, Right) bool) *Lost {
	of := p.PromotionOf(p.Spec.Environments[index])
	if of == nil {
		return nil
	}
	return lost(p.actsBy(*of), authors, may)
}

// LostKey returns the right to the Secret that signs calls, if that has been lost, nil if it is not known to be.
func (p *Pipeline) LostKey(secret string, authors []Author, may func(Author, Right) bool) *Lost {
	return lost([]Right{p.secret(secret)}, authors, may)
}

func lost(rights []Right, authors []Author, may func(Author, Right) bool) *Lost {
	for _, right := range rights {
		if author, known := userOf(authors, right); known && !may(author, right) {
			return &Lost{author, right}
		}
	}
	return nil
}

// String says what has been lost, and what to do about it.
func (l *Lost) String() string {
	return fmt.Sprintf("%q, who has this pipeline use it, has lost the right to %s: give it back, or have somebody write the pipeline who has it", l.User, l.Right)
}

// Shown are the rights to list what is shown of a target, which is what its author needs.
func (p *Pipeline) Shown(t Target) (out []Right) {
	for _, resource := range p.resources() {
		out = append(out, Right{Verb: "list", Resource: resource, Namespace: t.Namespace})
	}
	return out
}

// Note returns who has named the targets of a pipeline, and what it uses, once somebody has made before into after, before being nil for a new one. Whoever names a
// target, or another app, answers for what is shown there from then on, and whoever changes the spec for what is done with what it uses, as all of the spec says
// what that is. What was there stays with whoever has named it, as long as he may still see or use it: otherwise it goes to whoever writes the pipeline, if he may.
// It is not known of what was there before it was noted.
func Note(before, after *Pipeline, by Author, may func(Author, Right) bool) string {
	n := note{by: Author{User: by.User, Groups: by.Groups}, may: may}
	n.targets(before, after)
	n.uses(before, after)
	if len(n.out) == 0 {
		return ""
	}
	text, err := json.Marshal(n.out)
	if err != nil { // of strings there is nothing that could fail
		return ""
	}
	return string(text)
}

// note is being made of what somebody has written.
type note struct {
	by  Author
	may func(Author, Right) bool
	out []Author
}

// author returns who is to answer for something that needs rights: whoever did before, as long as he has them, false if that is not known.
func (n *note) author(before Author, known, fresh bool, needs []Right) (Author, bool) {
	lacks := func(a Author) bool { return slices.ContainsFunc(needs, func(r Right) bool { return !n.may(a, r) }) }
	switch {
	case fresh:
		return n.by, true
	case known && lacks(before) && !lacks(n.by):
		return n.by, true
	}
	return before, known
}

// of is the entry of an author.
func (n *note) of(author Author) *Author {
	i := slices.IndexFunc(n.out, author.as)
	if i < 0 {
		i = len(n.out)
		n.out = append(n.out, Author{User: author.User, Groups: author.Groups})
	}
	return &n.out[i]
}

func (n *note) targets(before, after *Pipeline) {
	var had []Author
	var there []string
	if before != nil && sameApp(before, after) {
		had = Authors(before)
		before.targets(func(t Target) { there = append(there, t.at()) })
	}
	after.targets(func(t Target) {
		last, known := AuthorOf(had, t)
		if author, known := n.author(last, known, !slices.Contains(there, t.at()), after.Shown(t)); known {
			of := n.of(author)
			of.Targets = added(of.Targets, t.at())
		}
	})
}

func (n *note) uses(before, after *Pipeline) {
	var had []Author
	stays := map[string]bool{}
	if before != nil {
		had = Authors(before)
		for _, need := range keys(before) {
			stays[need.use()] = true
		}
	}
	same := before != nil && equality.Semantic.DeepEqual(before.Spec, after.Spec)
	for _, need := range acted(after) {
		stays[need.use()] = same
	}
	for _, need := range append(acted(after), keys(after)...) {
		last, known := userOf(had, need.Right)
		if author, known := n.author(last, known, !stays[need.use()], []Right{need.Right}); known {
			of := n.of(author)
			of.Uses = added(of.Uses, need.use())
		}
	}
}

func added(to []string, one string) []string {
	if slices.Contains(to, one) {
		return to
	}
	return append(to, one)
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
