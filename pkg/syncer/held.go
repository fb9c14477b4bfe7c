package syncer

import (
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// at has the object above be what the cluster is to hold of it, at the revision that its share names.
func (s *Syncer) at(l planning.Look) planning.Look {
	if l.Above == nil {
		return l
	}
	version, err := s.Upstream.Versions.In(l.Kind, l.Above, s.cluster)
	if err != nil {
		l.Unread = err
		return l
	}
	l.Above, l.Revision = version.Object, version.Mark()
	return l
}

// hold leaves an object as it is whose content cannot be read, and tells the user why. Whoever names a revision has made it before, so that one which
// is not there is most often about to be seen.
func (s *Syncer) hold(l planning.Look, why string) error {
	if s.queue.NumRequeues(l.Key) < lacking.RequiredTries {
		return errNotYet
	}
	if l.Live == nil && !l.Kind.Workload {
		s.fail(l.Key, l.Above, steps.ReasonNotApplied, why) // workloads may wait for it
		return nil
	}
	next := states.State{UID: l.Above.GetUID(), Wait: states.Wait{Held: true, Reason: "keeps what it has: " + summary.Text(why)}}
	if l.Kind.Workload && trust.Ours(l.Live, l.Workload()) {
		next.Hash = projection.HashOf(l.Live)
		s.trust.Keep(l.Workload(), &next)
	}
	s.telling.wait(l, next.Wait)
	s.done(l.Key, l.Kind, next)
	return nil // the revision wakes us
}
