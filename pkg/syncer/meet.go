package syncer

import (
	"context"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// meet reports whether something that a projection needs is there, and sees to it where that can be done. What is not there wakes us when it
// comes, or the error has the step tried again.
func (s *Syncer) meet(ctx context.Context, l look, p plan, n need) (there bool, err error) {
	switch n {
	case needNamespace:
		if err := s.EnsureNamespace(ctx, p.desired.GetNamespace()); err != nil {
			return false, s.failed(l.key, l.above, err)
		}
	case needSecrets:
		s.below.secrets.follow(p.desired.GetNamespace(), true)
	case needGrants:
		if s.queue.NumRequeues(l.key) < grantTries && s.Upstream.mayBeGranted(l.workload()) {
			return false, errNotYet
		}
	case needVolume:
		waits, problem := s.awaitsVolume(l.key, l.above)
		if problem != "" {
			s.fail(l.key, l.above, steps.ReasonNotApplied, problem)
		}
		return !waits && problem == "", nil
	case needClasses:
		return s.meetClasses(l)
	case needBounds:
		if !s.bounded(l.workload()) {
			return false, errNotYet
		}
	case needWebhooks:
		if !s.asksAbove(l.above.GetNamespace()) {
			return false, errNotYet
		}
	case needUses:
		held, err := s.heldBack(ctx, l.workload(), p.desired, l.live)
		if err != nil {
			return false, s.failed(l.key, l.above, err)
		}
		return !held, nil
	}
	return true, nil
}

// meetClasses reports whether the cluster has the classes without which it makes no pods of a workload.
func (s *Syncer) meetClasses(l look) (there bool, err error) {
	reason, waits := s.classRefusal(l.key, s.missing(l.kind, l.above))
	if reason == "" && !waits {
		return true, nil
	}
	if !waits {
		s.fail(l.key, l.above, reasonClassMissing, reason)
	}
	if len(s.missing(l.kind, l.above)) == 0 {
		return false, errNotYet // it came before anybody knew that we wait
	}
	return false, nil // the watch tells when it comes
}

// bounded reports whether everything that bounds the pods of a workload is there and in force: a pod that is made before its quota is
// not counted by it, and would run for ever. What cannot be there, for a reason that has been told, holds up nobody.
func (s *Syncer) bounded(w identity.Workload) bool {
	for _, key := range s.Upstream.bounds(w) {
		kind, _ := projection.ForResource(key.Resource)
		above, live := s.Upstream.Get(key), s.below.Get(key)
		desired, _, err := s.desired(kind, above, live)
		if err != nil || desired == nil || s.stateOf(key).problem != "" {
			continue
		}
		if live == nil || hashOf(live) != hashOf(desired) || !kind.InForce(live) {
			return false
		}
	}
	return true
}
