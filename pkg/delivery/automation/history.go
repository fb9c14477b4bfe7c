package automation

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// defaultHistory is how many revisions and releases are kept where an application does not say.
const defaultHistory = 10

// What the revisions of an application hold together is bounded by mostHeld, in bytes, as far as nobody uses them: it is all in the memory of the server. A
// part of a revision is counted as what it may have at most, and so is the revision itself.
const (
	mostHeld = 256 << 20
	partSize = 1 << 20
	headSize = 256 << 10
)

// SpentReleases are those that may go: they have ended, and as many newer ones that have are kept. What tells how the application is, and what
// automation has done last, is kept whatever the limit is. Named are the revisions that objects name. Where the revisions in use hold too much, those
// releases go as well that alone use the oldest.
func (s State) SpentReleases(named map[string]bool) []*v1alpha1.Release {
	needed := []*v1alpha1.Release{
		s.Current(), s.chosen(), s.newest(automatic), s.newest((*v1alpha1.Release).Follows),
		s.newest(func(r *v1alpha1.Release) bool {
			return r.Status.Phase == v1alpha1.ReleaseSucceeded && r.Spec.Whole()
		}),
	}
	var ended []*v1alpha1.Release
	for _, release := range s.Releases {
		if release.Status.Phase.Ended() && release.DeletionTimestamp == nil && !slices.Contains(needed, release) {
			ended = append(ended, release)
		}
	}
	slices.SortFunc(ended, older)
	limit := int(ptr.Deref(s.Application.Spec.ReleaseHistoryLimit, defaultHistory))
	spent := slices.Clone(ended[:max(0, len(ended)-limit)])
	used, firmly := s.without(spent).used(named), s.without(ended).used(named)
	held := s.held(used)
	for _, revision := range s.byNumber() {
		if held <= mostHeld {
			break
		}
		if !used[revision.Name] || firmly[revision.Name] {
			continue
		}
		for _, release := range ended {
			if usedBy(release)[revision.Name] && !slices.Contains(spent, release) {
				spent = append(spent, release)
			}
		}
		held -= s.size(revision)
	}
	return spent
}

// SpentRevisions are those that may go, from the oldest: nobody uses them, and as many newer ones that nobody uses are kept, as far as they do not hold
// too much. Named are those that objects name. The latest, the live one, that of the pin, and those of releases are in use.
func (s State) SpentRevisions(named map[string]bool) []*v1alpha1.ApplicationRevision {
	used := s.used(named)
	var unused []*v1alpha1.ApplicationRevision
	for _, revision := range s.byNumber() {
		if !used[revision.Name] && revision.DeletionTimestamp == nil {
			unused = append(unused, revision)
		}
	}
	limit := int(ptr.Deref(s.Application.Spec.RevisionHistoryLimit, defaultHistory))
	held, spent := s.held(used), len(unused)
	for spent > 0 && len(unused)-spent < limit && held+s.size(unused[spent-1]) <= mostHeld {
		spent--
		held += s.size(unused[spent])
	}
	return unused[:spent]
}

// without is the state with some releases gone.
func (s State) without(gone []*v1alpha1.Release) State {
	s.Releases = slices.DeleteFunc(slices.Clone(s.Releases), func(r *v1alpha1.Release) bool { return slices.Contains(gone, r) })
	return s
}

// used are the revisions in use, those that objects name among them.
func (s State) used(named map[string]bool) map[string]bool {
	used := map[string]bool{s.Application.Spec.Revision: true, s.Live(): true, s.Application.Status.LiveRevision: true}
	if latest := s.Latest(); latest != nil {
		used[latest.Name] = true
	}
	for _, release := range s.Releases {
		maps.Copy(used, usedBy(release))
	}
	useVariants(used, s.Application.Status.Variants)
	maps.Copy(used, named)
	return used
}

// usedBy are the revisions that a release uses.
func usedBy(release *v1alpha1.Release) map[string]bool {
	used := map[string]bool{
		release.Spec.Revision: true, release.Status.BeforeRevision: true, release.Status.DeliveryRevision: true, release.Status.BeforeDeliveryRevision: true,
	}
	useVariants(used, release.Status.Variants)
	useVariants(used, release.Status.Before)
	return used
}

func useVariants(used map[string]bool, variants []v1alpha1.Variant) {
	for _, variant := range variants {
		used[variant.Revision] = true
		for _, cluster := range variant.Clusters {
			used[cluster.Revision] = true
		}
	}
}

// byNumber are the revisions from the oldest.
func (s State) byNumber() []*v1alpha1.ApplicationRevision {
	return slices.SortedFunc(slices.Values(s.Revisions), func(a, b *v1alpha1.ApplicationRevision) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
}

// size is what a revision may hold at most, in bytes.
func (s State) size(of *v1alpha1.ApplicationRevision) int {
	return headSize + s.Parts[of.Spec.Number]*partSize
}

// held is what some revisions may hold together.
func (s State) held(names map[string]bool) int {
	sum := 0
	for _, revision := range s.Revisions {
		if names[revision.Name] {
			sum += s.size(revision)
		}
	}
	return sum
}
