package automation

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// defaultHistory is how many revisions and releases are kept where an application does not say.
const defaultHistory = 10

// SpentReleases are those that may go, from the oldest: they have ended, and as many newer ones that have are kept. What tells how the
// application is, and what automation has done last, is kept whatever the limit is.
func (s State) SpentReleases() []*v1alpha1.Release {
	needed := []*v1alpha1.Release{
		s.Current(), s.chosen(), s.newest(func(r *v1alpha1.Release) bool { return !byPerson(r) }),
		s.newest(func(r *v1alpha1.Release) bool {
			return r.Status.Phase == v1alpha1.ReleaseSucceeded && len(r.Spec.Targets) == 0
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
	return ended[:max(0, len(ended)-limit)]
}

// SpentRevisions are those that may go, from the oldest: nobody uses them, and as many newer ones that nobody uses are kept. Named are those that
// objects name. The latest, the live one, that of the pin, and those of releases are in use.
func (s State) SpentRevisions(named map[string]bool) []*v1alpha1.ApplicationRevision {
	used := map[string]bool{s.Application.Spec.Revision: true, s.Live(): true, s.Application.Status.LiveRevision: true}
	if latest := s.Latest(); latest != nil {
		used[latest.Name] = true
	}
	for _, release := range s.Releases {
		used[release.Spec.Revision], used[release.Status.BeforeRevision] = true, true
		for _, variants := range [][]v1alpha1.Variant{release.Status.Variants, release.Status.Before} {
			useVariants(used, variants)
		}
	}
	useVariants(used, s.Application.Status.Variants)
	var unused []*v1alpha1.ApplicationRevision
	for _, revision := range s.Revisions {
		if !used[revision.Name] && !named[revision.Name] && revision.DeletionTimestamp == nil {
			unused = append(unused, revision)
		}
	}
	slices.SortFunc(unused, func(a, b *v1alpha1.ApplicationRevision) int { return int(a.Spec.Number - b.Spec.Number) })
	limit := int(ptr.Deref(s.Application.Spec.RevisionHistoryLimit, defaultHistory))
	return unused[:max(0, len(unused)-limit)]
}

func useVariants(used map[string]bool, variants []v1alpha1.Variant) {
	for _, variant := range variants {
		used[variant.Revision] = true
		for _, cluster := range variant.Clusters {
			used[cluster.Revision] = true
		}
	}
}
