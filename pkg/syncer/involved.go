package syncer

import (
	"github.com/manifold-dev/manifold/pkg/identity"
)

// What a cluster has to do with is said above, by decisions and breakdowns alone. That it holds something with the right marks says nothing:
// whoever is its admin writes what marks he likes.

// has reports whether the cluster was given a workload: above it says so, or this process has projected it since it started, which may not have
// come to be in the breakdown yet.
func (s *Syncer) has(w identity.Workload) bool {
	return s.stateOf(w.Key()).holds(w) || identity.Involves(w.Object, s.cluster)
}
