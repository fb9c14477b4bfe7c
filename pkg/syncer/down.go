package syncer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/reporting"
	"github.com/manifold-dev/manifold/pkg/syncer/secrets"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// look brings one object of the cluster in line and, whatever comes of it, has reported what was waited with until then.
func (s *Syncer) look(ctx context.Context, key identity.Key) error {
	err := s.sync(ctx, key)
	if s.states.Seen(key) {
		s.changed(key, false)
	}
	return err
}

// sync brings one object of the cluster in line: it looks at what there is, plans, and carries the plan out.
func (s *Syncer) sync(ctx context.Context, key identity.Key) error {
	switch key.Resource {
	case identity.Priorities:
		return s.classes.Sync(ctx, key)
	case identity.Volumes:
		return s.volumes.Sync(ctx, key)
	case claimResource:
		s.volumes.ClaimLooked(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	case identity.EndpointSlices:
		if left := s.pace.Left(key); left > 0 {
			s.queue.AddAfter(key, left)
			return nil
		}
	}
	if _, custom := s.Upstream.CustomKind(key.Resource); custom {
		s.CustomChanged(s.cluster, key)
		return nil
	}
	if s.terms.GivenUp() || key.Resource == namespaceResource && projection.NamespaceShared(key.Name) {
		return nil
	}
	for {
		l, err := s.lookAt(ctx, key)
		if err != nil {
			return s.failed(key, l.Above, err)
		}
		p := s.planner.Plan(l)
		klog.FromContext(ctx).V(4).Info("Planned", "key", key, "plan", p)
		if p.Task == steps.Release {
			s.reservations.release(key)
			continue
		}
		err = s.carryOut(ctx, l, p)
		s.reservations.forgo(key)
		return err
	}
}

// lookAt gathers what there is of an object. What is still to be settled of it is looked for in the order in which it is settled.
func (s *Syncer) lookAt(ctx context.Context, key identity.Key) (planning.Look, error) {
	kind, ok := projection.ForResource(key.Resource)
	if !ok {
		return planning.Look{}, fmt.Errorf("no projection for %s", key)
	}
	l := s.at(planning.Look{Key: key, Kind: kind, Above: s.Upstream.Get(key), Live: s.below.Get(key)})
	var err error
	if secrets.Silent(key) {
		l.Live, err = s.below.secrets.Look(ctx, cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	}
	if err != nil || s.terms.LeftAsItIs() {
		return l, err
	}
	if l.Reservation, err = s.reservations.look(ctx, kind, key, l.Live); err != nil || l.Reservation != planning.NothingReserved {
		return l, err
	}
	if l.Orphan = s.orphans.Look(kind, l.Above, l.Live); l.Orphan == mirrors.NoOrphan {
		l.HandedOver, err = s.adoption.HandedOver(ctx, kind, l.Above, l.Live)
	}
	return l, err
}

// settle brings to its end what was begun with an object earlier. What comes of it wakes us.
func (s *Syncer) settle(ctx context.Context, l planning.Look, p steps.Plan) error {
	switch p.Task {
	case steps.AwaitWrite:
		return errNotYet
	case steps.Show:
		s.orphans.Show(l.Live)
	case steps.Mark:
		return s.orphans.Mark(ctx, l.Kind, l.Above, l.Live)
	case steps.HandOver:
		s.done(l.Key, l.Kind, states.State{})
	case steps.Orphan:
		return s.letGo(ctx, l)
	}
	return nil
}

// carryOut does what was planned about an object, and notes what came of it.
func (s *Syncer) carryOut(ctx context.Context, l planning.Look, p steps.Plan) error {
	switch p.Task {
	case steps.AwaitWrite, steps.Show, steps.Mark, steps.HandOver, steps.Orphan:
		return s.settle(ctx, l, p)
	}
	s.forgetLost(l.Kind, l.Above, l.Live)
	var err error
	s.telling.doubts(l)
	switch p.Task {
	case steps.Nothing:
		s.states.Unwait(l.Key)
		return nil
	case steps.Refuse:
		s.fail(l.Key, l.Above, steps.ReasonNotApplied, p.Why)
		return nil // the object must change before another try makes sense
	case steps.Await:
		next := states.State{UID: l.Above.GetUID(), Wait: states.Wait{Held: true, Reason: p.Why}}
		s.telling.wait(l, next.Wait)
		s.done(l.Key, l.Kind, next)
		return nil // what happens there wakes us
	case steps.Hold:
		return s.hold(l, p.Why)
	case steps.Linger:
		next := states.State{UID: l.Above.GetUID(), Generation: l.Above.GetGeneration(), Hash: projection.HashOf(l.Live)}
		s.trust.Keep(l.Workload(), &next)
		s.done(l.Key, l.Kind, next)
		return nil
	case steps.Project:
		return s.project(ctx, l, p)
	}
	if p.Task != steps.Forget {
		klog.FromContext(ctx).V(2).Info("Removing", "key", l.Key, "plan", p)
	}
	switch p.Task {
	case steps.Leave:
		err = s.leave(ctx, l.Kind, l.Above, l.Live)
	case steps.DeleteNamespace:
		err = s.removeNamespace(ctx, l.Kind, l.Live)
	case steps.DeleteOwner:
		if err = s.orphans.Abandon(ctx, l.Kind, l.Live); err == nil {
			err = s.remove(ctx, l, p)
		}
	case steps.Delete:
		err = s.remove(ctx, l, p)
	}
	s.states.Unwait(l.Key)
	if err != nil {
		return s.failed(l.Key, l.Above, err)
	}
	s.done(l.Key, l.Kind, states.State{})
	if l.Live == nil {
		s.ended(l.Key, l.Kind, l.Above)
	}
	return nil
}

// project brings the cluster to the projection of an object, once everything is there that this needs.
func (s *Syncer) project(ctx context.Context, l planning.Look, p steps.Plan) error {
	for _, n := range p.First {
		if there, err := s.meet(ctx, l, p, n); !there || err != nil {
			return err
		}
	}
	step := p.Action.Step
	if step != projection.Nothing {
		klog.FromContext(ctx).V(2).Info("Projecting", "key", l.Key, "step", step, "reason", p.Why)
	}
	hash := "" // of what the step writes, if anything
	if step == projection.Create || step == projection.Apply {
		hash = projection.HashOf(p.Desired)
	}
	if l.Key.Resource == identity.EndpointSlices && step != projection.Nothing {
		s.pace.Wrote(l.Key)
	}
	if err := s.reservations.write(l.Key, hash, func() error {
		_, err := s.writer(l.Kind, l.Key.Namespace).Act(ctx, p.Action, p.Desired, l.Live)
		return err
	}); err != nil {
		return s.failed(l.Key, l.Above, err)
	}
	if step != projection.Nothing && step != projection.Wait || p.Ending.Goes {
		s.queue.AddAfter(l.Key, steps.LookAgain)
	}
	if err := s.pods.End(ctx, l.Above, p.Ending.Stuck); err != nil {
		return s.failed(l.Key, l.Above, err)
	}
	if step == projection.Replace || step == projection.Wait {
		s.done(l.Key, l.Kind, states.State{UID: l.Above.GetUID()})
		return nil // the watch tells when the old one is gone
	}
	next := states.State{
		UID: l.Above.GetUID(), Generation: l.Above.GetGeneration(), Hash: projection.HashOf(p.Desired), Revision: l.Revision, Wait: p.Waits,
		Note: classes.Note(s.classes.Missing(l.Kind, l.Above)),
	}
	s.trust.Note(l.Kind, l.Above, p.Desired, l.Key, &next)
	s.telling.wait(l, p.Waits)
	s.classes.TellNote(l.Key, l.Above, next.Note)
	s.done(l.Key, l.Kind, next)
	if until := p.Waits.Until; !until.IsZero() {
		s.queue.AddAfter(l.Key, until.Sub(s.addresses.Clock.Now()))
	}
	return nil
}

// remove deletes what the cluster holds of an object.
func (s *Syncer) remove(ctx context.Context, l planning.Look, p steps.Plan) error {
	if l.Live != nil {
		s.queue.AddAfter(l.Key, steps.LookAgain)
	}
	return s.reservations.write(l.Key, moves.Gone, func() error {
		return s.writer(l.Kind, l.Key.Namespace).Delete(ctx, l.Live, p.Removal)
	})
}

// removeNamespace deletes a namespace of ours with what is left in it. One where somebody else runs something is let go instead, and is
// nobody's business of ours from then on.
func (s *Syncer) removeNamespace(ctx context.Context, kind projection.Kind, live projection.Object) error {
	stranger, err := s.strangers.In(ctx, live.GetName())
	if err != nil {
		return err
	}
	if stranger != "" {
		klog.FromContext(ctx).Info("Letting go of a namespace that somebody else uses", "namespace", live.GetName(), "has", stranger)
		return s.orphan(ctx, kind, live)
	}
	return s.writer(kind, "").Delete(ctx, live, writer.Deletion{})
}

// done notes the outcome of a step and has the workload's report looked at again.
func (s *Syncer) done(key identity.Key, kind projection.Kind, st states.State) {
	last, news := s.states.Done(key, st)
	s.reports.Looked(key, !kind.Workload && last.Hash != "" && last.Hash != st.Hash)
	if !news {
		return
	}
	if reporting.Summarised(kind) {
		s.changed(key, false)
	}
	s.leadersChanged(key, kind, last, st)
	if last.Problem != "" && st.Problem == "" && !kind.Workload {
		for _, w := range s.Upstream.Demand.Needing(key) { // they were told to have it too
			s.changed(w.Key(), false)
		}
	}
}

// failed notes an error where users see it, and returns what has the step tried again.
func (s *Syncer) failed(key identity.Key, above projection.Object, err error) error {
	return s.queue.Failed(key, err, func(reason, message string) { s.fail(key, above, reason, message) })
}

// fail makes a problem visible: as an event on the object and on the workloads that need it, and in their reports.
func (s *Syncer) fail(key identity.Key, above projection.Object, reason, message string) {
	var uid types.UID
	if above != nil {
		uid = above.GetUID()
	}
	if !s.states.Fail(key, uid, message) {
		return
	}
	s.reports.Looked(key, false)
	if above == nil {
		return
	}
	kind, _ := projection.ForResource(key.Resource)
	if !s.trust.Concerned(kind, above) {
		return // it is about what somebody else has put there
	}
	steps.Warn(s.Recorder, above, s.cluster, reason, message)
	if kind.Workload {
		s.changed(key, true)
		return
	}
	for _, w := range s.Upstream.Demand.Needing(key) {
		if s.Upstream.Demand.Runs(w, s.cluster) {
			steps.Warn(s.Recorder, w.Object, s.cluster, reason, message)
			s.changed(w.Key(), true)
		}
	}
}
