package automation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/changes"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// Triggers reports whether a revision is released by itself: where the application, or the file beside the manifests, names files that count, one of
// them has changed since the revision before.
func Triggers(app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision) bool {
	if revision.Spec.Changes == nil {
		return true
	}
	folder := ""
	if git := app.Spec.Source.Git; git != nil {
		folder = git.Path
	}
	return changes.Count(revision.Spec.Changes, read.Spec(app.Spec, revision).Trigger, folder)
}

// Untriggered says why a revision is not released by itself, and what releases it.
func Untriggered(app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision) string {
	return fmt.Sprintf("%s is not released by itself: no file by which it differs from %s counts by spec.trigger; manifold app sync %s --revision %s",
		revision.Name, revision.Spec.Changes.Since, app.Name, revision.Name)
}

// Passed is the newest revision if it is passed over because it is not released by itself, nil otherwise.
func (s State) Passed() *v1alpha1.ApplicationRevision {
	latest := s.Latest()
	if latest == nil || s.Application.ByHand() || s.Application.Spec.Revision != "" || Triggers(s.Application, latest) {
		return nil
	}
	if wanted, _ := s.Wanted(); wanted == latest.Name {
		return nil
	}
	return latest
}

// due is the newest revision that is released by itself, nil if there is none. What automation has released once stays due, as after spec.trigger has
// changed: nothing older is released in its place.
func (s State) due() *v1alpha1.ApplicationRevision {
	released := map[string]bool{}
	for _, release := range s.Releases {
		if !release.Spec.TriggeredBy.ByPerson() {
			released[release.Spec.Revision] = true
		}
	}
	newest := slices.SortedFunc(slices.Values(s.Revisions), func(a, b *v1alpha1.ApplicationRevision) int { return cmp.Compare(b.Spec.Number, a.Spec.Number) })
	for _, revision := range newest {
		if released[revision.Name] || Triggers(s.Application, revision) {
			return revision
		}
	}
	return nil
}
