package syncer

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// reasonWaiting is the reason of the event about what a cluster waits for with an object.
const reasonWaiting = "WaitingForCluster"

// sync brings one object of the cluster in line: it looks at what there is, settles what was begun earlier, plans, and carries the plan out.
func (s *Syncer) sync(ctx context.Context, key identity.Key) error {
	switch key.Resource {
	case priorityResource:
		return s.syncPriority(ctx, key)
	case volumeResource:
		return s.syncVolume(ctx, key)
	case claimResource:
		s.claimLooked(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	}
	if s.givenUp() || key.Resource == namespaceResource && projection.NamespaceShared(key.Name) {
		return nil
	}
	l, err := s.lookAt(ctx, key)
	if err != nil {
		return s.failed(key, l.above, err)
	}
	if leaving, manner := s.Leaving(s.cluster); leaving && manner == v1alpha1.RemoveOrphan {
		return s.orphan(ctx, l.kind, l.live)
	}
	if settled, err := s.settle(ctx, l); !settled || err != nil {
		return err
	}
	p := s.plan(l)
	klog.FromContext(ctx).V(4).Info("Planned", "key", key, "plan", p)
	return s.carryOut(ctx, l, p)
}

// lookAt gathers what there is of an object.
func (s *Syncer) lookAt(ctx context.Context, key identity.Key) (look, error) {
	kind, ok := projection.ForResource(key.Resource)
	if !ok {
		return look{}, fmt.Errorf("no projection for %s", key)
	}
	l := look{key: key, kind: kind, above: s.Upstream.Get(key), live: s.below.Get(key)}
	var err error
	if silentSecret(key) {
		l.live, err = s.below.secrets.look(ctx, cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	}
	return l, err
}

// settle reports whether what was begun with an object is settled, so that it is known where it stands: a write that reserved ordinals, an
// object that was let go of, and one that a controller in the cluster has taken over. What is not settled yet wakes us.
func (s *Syncer) settle(ctx context.Context, l look) (settled bool, err error) {
	if err := s.settleReservation(ctx, l.kind, l.key, l.live); err != nil {
		return false, s.failed(l.key, l.above, err)
	}
	if waits, err := s.orphans.Settle(ctx, l.kind, l.above, l.live); waits || err != nil {
		return false, err
	}
	handed, err := s.handedOver(ctx, l.kind, l.above, l.live)
	if err != nil {
		return false, s.failed(l.key, l.above, err)
	}
	if handed {
		s.done(l.key, l.kind, state{})
	}
	return !handed, nil
}

// carryOut does what was planned about an object, and notes what came of it.
func (s *Syncer) carryOut(ctx context.Context, l look, p plan) error {
	s.forgetLost(l.kind, l.above, l.live)
	var err error
	switch p.task {
	case taskNothing:
		s.unwait(l.key)
		return nil
	case taskRefuse:
		s.fail(l.key, l.above, steps.ReasonNotApplied, p.why)
		return nil // the object must change before another try makes sense
	case taskAwait:
		next := state{uid: l.above.GetUID(), wait: wait{held: true, reason: p.why}}
		s.tellWait(l, next.wait)
		s.done(l.key, l.kind, next)
		return nil // what happens there wakes us
	case taskLinger:
		next := state{uid: l.above.GetUID(), generation: l.above.GetGeneration(), hash: hashOf(l.live)}
		s.keepTold(l.workload(), &next)
		s.done(l.key, l.kind, next)
		return nil
	case taskProject:
		return s.project(ctx, l, p)
	}
	if p.task != taskForget {
		klog.FromContext(ctx).V(2).Info("Removing", "key", l.key, "plan", p)
	}
	switch p.task {
	case taskLeave:
		err = s.leave(ctx, l.kind, l.above, l.live)
	case taskDeleteNamespace:
		err = s.removeNamespace(ctx, l.kind, l.live)
	case taskDeleteOwner:
		if err = s.orphans.Abandon(ctx, l.kind, l.live); err == nil {
			err = s.writer(l.kind, l.key.Namespace).Delete(ctx, l.live, p.removal)
		}
	case taskDelete:
		err = s.writer(l.kind, l.key.Namespace).Delete(ctx, l.live, p.removal)
	}
	s.unwait(l.key)
	if err != nil {
		return s.failed(l.key, l.above, err)
	}
	s.done(l.key, l.kind, state{})
	if l.live == nil {
		s.ended(l.key, l.above)
	}
	return nil
}

// project brings the cluster to the projection of an object, once everything is there that this needs.
func (s *Syncer) project(ctx context.Context, l look, p plan) error {
	for _, n := range p.first {
		if there, err := s.meet(ctx, l, p, n); !there || err != nil {
			return err
		}
	}
	step := p.action.Step
	if step != projection.Nothing {
		klog.FromContext(ctx).V(2).Info("Projecting", "key", l.key, "step", step, "reason", p.why)
	}
	if step == projection.Create || step == projection.Apply {
		s.Upstream.Fleets.Writing(l.key, s.cluster, hashOf(p.desired))
	}
	if _, err := s.writer(l.kind, l.key.Namespace).Act(ctx, p.action, p.desired, l.live); err != nil {
		return s.failed(l.key, l.above, err)
	}
	if step == projection.Replace || step == projection.Wait {
		s.done(l.key, l.kind, state{uid: l.above.GetUID()})
		return nil // the watch tells when the old one is gone
	}
	next := state{uid: l.above.GetUID(), generation: l.above.GetGeneration(), hash: hashOf(p.desired), wait: p.waits, note: note(s.missing(l.kind, l.above))}
	s.noteTold(l.kind, l.above, p.desired, l.key, &next)
	s.tellWait(l, p.waits)
	s.tellNote(l.key, l.above, next.note)
	s.done(l.key, l.kind, next)
	return nil
}

// tellWait tells the user what this cluster waits for with an object, once.
func (s *Syncer) tellWait(l look, waits wait) {
	if waits.reason != "" && !waits.brief && waits.reason != s.stateOf(l.key).reason {
		s.Recorder.Eventf(l.above, corev1.EventTypeNormal, reasonWaiting, "cluster %q %s", s.cluster, waits.reason)
	}
}

// removeNamespace deletes a namespace of ours with what is left in it. One where somebody else runs something is let go instead, and is
// nobody's business of ours from then on.
func (s *Syncer) removeNamespace(ctx context.Context, kind projection.Kind, live projection.Object) error {
	stranger, err := s.stranger(ctx, live.GetName())
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
func (s *Syncer) done(key identity.Key, kind projection.Kind, st state) {
	last := s.stateOf(key)
	if last == st {
		s.wakeWaiting(key) // it may have been gone meanwhile
		return
	}
	s.setState(key, st)
	if summarised(kind) {
		s.changed(key, false)
	}
	if last.problem != "" && st.problem == "" && !kind.Workload {
		for _, w := range s.Upstream.needing(key) { // they were told to have it too
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
	message = summary.Text(message) // a cluster may have worded it
	previous := s.stateOf(key)
	if previous.problem == message {
		return
	}
	next := state{problem: message}
	if above != nil {
		next.uid = above.GetUID()
	}
	s.setState(key, next)
	if above == nil {
		return
	}
	kind, _ := projection.ForResource(key.Resource)
	if !s.concerned(kind, above) {
		return // it is about what somebody else has put there
	}
	text := fmt.Sprintf("cluster %q: %s", s.cluster, message)
	s.Recorder.Event(above, corev1.EventTypeWarning, reason, text)
	if kind.Workload {
		s.changed(key, true)
		return
	}
	for _, w := range s.Upstream.needing(key) {
		if s.Upstream.runs(w, s.cluster) {
			s.Recorder.Event(w.Object, corev1.EventTypeWarning, reason, text)
			s.changed(w.Key(), true)
		}
	}
}

// projectedPartChanged reports whether an update below can have touched what is projected. A status never is, and controllers below write
// it most of all.
func projectedPartChanged(before, after projection.Object) bool {
	if before.GetGeneration() != after.GetGeneration() || after.GetGeneration() == 0 {
		return true
	}
	return (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		(metav1.GetControllerOfNoCopy(before) == nil) != (metav1.GetControllerOfNoCopy(after) == nil) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
