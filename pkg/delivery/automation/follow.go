package automation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/places"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// follow is the release by which targets that follow their clusters at once do so, nil if none has to. Each gets what it runs: what somebody has released to it
// alone stays. What is not over, or has failed, is for somebody to decide first.
func (s State) follow() *v1alpha1.Release {
	current := s.Current()
	if current == nil || s.Clusters == nil || s.Application.Spec.Suspend || s.Open() != nil ||
		current.Status.Phase != v1alpha1.ReleaseSucceeded && current.Status.Phase != v1alpha1.ReleaseRolledBack {
		return nil
	}
	moves, err := s.moves(current)
	if err != nil {
		return nil // the next release cannot begin either, which is told
	}
	revision, targets, told := (*v1alpha1.ApplicationRevision)(nil), []string(nil), []string(nil)
	for i := range s.Targets {
		name := s.Targets[i].Name
		of := toldOf(moves, name)
		if s.Targets[i].Follow != v1alpha1.FollowImmediately || len(of) == 0 {
			continue
		}
		runs := s.revision(s.runs(current, name))
		if runs == nil || revision != nil && revision != runs {
			continue // of what another revision takes comes next
		}
		revision, targets, told = runs, append(targets, name), append(told, of...)
	}
	if revision == nil {
		return nil
	}
	hash := hashOf(told)[:16]
	newest := s.newest(func(*v1alpha1.Release) bool { return true })
	if newest.Follows() && newest.Annotations[v1alpha1.AnnotationFollows] == hash && newest.Spec.Revision == revision.Name {
		return nil // that has come to what it could
	}
	out := s.release(revision, v1alpha1.CauseTargets, Fingerprint(s.Targets), delivery.Said(strings.Join(told, "; ")), newest, hash)
	out.Annotations[v1alpha1.AnnotationFollows] = hash
	out.Spec.Targets, out.Spec.Strategy = targets, v1alpha1.StrategyQuickSync
	return out
}

// moves are the clusters that come and go, without those that come and are not well yet.
func (s State) moves(current *v1alpha1.Release) (places.Moves, error) {
	moves, err := places.Next(read.Targets(s.Targets), read.Runs(current.Status.Variants), s.Clusters)
	if errors.Is(err, places.ErrNone) {
		err = nil // all leave
	}
	moves.Joins = slices.DeleteFunc(moves.Joins, func(place delivery.Place) bool { return s.Unready[place.Cluster] })
	return moves, err
}

// toldOf says which clusters come to a target and which leave it.
func toldOf(moves places.Moves, target string) (out []string) {
	for _, place := range moves.Joins {
		if place.Target == target {
			out = append(out, fmt.Sprintf("cluster %q has joined target %s", place.Cluster, target))
		}
	}
	for _, place := range moves.Leaves {
		if place.Target == target {
			out = append(out, fmt.Sprintf("cluster %q has left target %s", place.Cluster, target))
		}
	}
	return out
}

// runs is the revision that a target runs, that of the whole application if it runs nowhere yet, and "" if its clusters run several.
func (s State) runs(current *v1alpha1.Release, target string) string {
	out := ""
	for _, variant := range current.Status.Variants {
		if variant.Name != v1alpha1.VariantPrimary {
			continue
		}
		for _, cluster := range variant.Clusters {
			revision := cluster.Revision
			if revision == "" {
				revision = variant.Revision
			}
			switch {
			case cluster.Target != target || revision == out:
			case out != "":
				return ""
			default:
				out = revision
			}
		}
	}
	if out == "" {
		return s.Live()
	}
	return out
}
