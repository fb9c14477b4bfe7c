package git

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Revision is the commit that a ref stood for when it was looked up.
type Revision struct {
	// Commit is its hash.
	Commit string
	// Name is the branch or tag that led there, such as "refs/heads/main"; empty for a bare commit.
	Name string
}

// choose returns what ref stands for among what a repository has shown.
func choose(shown *packp.AdvRefs, ref Ref) (Revision, error) {
	constraint, err := ref.validate()
	if err != nil {
		return Revision{}, err
	}
	switch {
	case constraint != nil:
		return newest(shown, constraint)
	case ref.Tag != "":
		return named(shown, "refs/tags/"+ref.Tag)
	case ref.Branch != "":
		return named(shown, "refs/heads/"+ref.Branch)
	case ref.Commit != "":
		return Revision{Commit: ref.Commit}, nil
	}
	return first(shown)
}

// named returns the commit of a full name. A tag that is an object of its own leads on to its commit.
func named(shown *packp.AdvRefs, name string) (Revision, error) {
	if commit, ok := shown.Peeled[name]; ok {
		return Revision{Commit: commit.String(), Name: name}, nil
	}
	if commit, ok := shown.References[name]; ok {
		return Revision{Commit: commit.String(), Name: name}, nil
	}
	return Revision{}, ErrNoRef
}

// first returns the branch that the repository puts first.
func first(shown *packp.AdvRefs) (Revision, error) {
	for _, link := range shown.Capabilities.Get(capability.SymRef) {
		if from, to, ok := strings.Cut(link, ":"); ok && from == plumbing.HEAD.String() {
			if found, err := named(shown, to); err == nil {
				return found, nil
			}
		}
	}
	if shown.Head == nil {
		return Revision{}, fmt.Errorf("%w: it has no default branch; name one", ErrNoRef)
	}
	return Revision{Commit: shown.Head.String(), Name: plumbing.HEAD.String()}, nil
}

// newest returns the tag of the highest version that constraint allows. Of equal versions, as "1.2.0" and "v1.2.0", the first by name counts.
func newest(shown *packp.AdvRefs, constraint *semver.Constraints) (Revision, error) {
	type candidate struct {
		version *semver.Version
		name    string
	}
	var candidates []candidate
	for name := range shown.References {
		tag, ok := strings.CutPrefix(name, "refs/tags/")
		if !ok {
			continue
		}
		if version, err := semver.NewVersion(tag); err == nil && constraint.Check(version) {
			candidates = append(candidates, candidate{version, name})
		}
	}
	if len(candidates) == 0 {
		return Revision{}, fmt.Errorf("%w: no tag is a version in this range", ErrNoRef)
	}
	best := slices.MaxFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.version.Compare(b.version), cmp.Compare(b.name, a.name))
	})
	return named(shown, best.name)
}
