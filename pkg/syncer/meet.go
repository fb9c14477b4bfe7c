package syncer

import (
	"context"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// grantTries is how often in a row a pod or Job waits for rights that its ServiceAccount may be about to have: for a third of a second. Charts and
// manifests bring all of them at once, in whatever order, and each kind is watched by itself.
const grantTries = 3

// meet reports whether something that a projection needs is there, and sees to it where that can be done. What is not there wakes us when it
// comes, or the error has the step tried again.
func (s *Syncer) meet(ctx context.Context, l planning.Look, p steps.Plan, n steps.Need) (there bool, err error) {
	switch n {
	case steps.NeedNamespace:
		if err := s.EnsureNamespace(ctx, p.Desired.GetNamespace()); err != nil {
			return false, s.failed(l.Key, l.Above, err)
		}
	case steps.NeedSecrets:
		s.below.secrets.Follow(p.Desired.GetNamespace(), true)
	case steps.NeedGrants:
		if s.queue.NumRequeues(l.Key) < grantTries && s.Upstream.Access.MayBeGranted(l.Workload()) {
			return false, errNotYet
		}
	case steps.NeedVolume:
		waits, problem := s.volumes.Awaits(l.Key, l.Above)
		if problem != "" {
			s.fail(l.Key, l.Above, steps.ReasonNotApplied, problem)
		}
		return !waits && problem == "", nil
	case steps.NeedClasses:
		return s.meetClasses(l)
	case steps.NeedBounds:
		if !s.bounded(l.Workload()) {
			return false, errNotYet
		}
	case steps.NeedWebhooks:
		if !s.asksAbove(l.Above.GetNamespace()) {
			return false, errNotYet
		}
	case steps.NeedUses:
		held, err := s.lacking.HeldBack(ctx, l.Workload(), p.Desired, l.Live)
		if err != nil {
			return false, s.failed(l.Key, l.Above, err)
		}
		return !held, nil
	}
	return true, nil
}

// meetClasses reports whether the cluster has the classes without which it makes no pods of a workload.
func (s *Syncer) meetClasses(l planning.Look) (there bool, err error) {
	reason, waits := s.classes.Refusal(l.Key, s.classes.Missing(l.Kind, l.Above))
	if reason == "" && !waits {
		return true, nil
	}
	if !waits {
		s.fail(l.Key, l.Above, classes.ReasonClassMissing, reason)
	}
	if len(s.classes.Missing(l.Kind, l.Above)) == 0 {
		return false, errNotYet // it came before anybody knew that we wait
	}
	return false, nil // the watch tells when it comes
}

// bounded reports whether everything that bounds the pods of a workload is there and in force: a pod that is made before its quota is
// not counted by it, and would run for ever. What cannot be there, for a reason that has been told, holds up nobody.
func (s *Syncer) bounded(w identity.Workload) bool {
	for _, key := range s.Upstream.Demand.Bounds(w) {
		kind, _ := projection.ForResource(key.Resource)
		l := s.at(planning.Look{Key: key, Kind: kind, Above: s.Upstream.Get(key), Live: s.below.Get(key)})
		live := l.Live
		desired, _, err := s.planner.Desired(l)
		if err != nil || desired == nil || l.Unread != nil || s.states.Of(key).Problem != "" {
			continue
		}
		if live == nil || projection.HashOf(live) != projection.HashOf(desired) || !kind.InForce(live) {
			return false
		}
	}
	return true
}
