package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

const (
	// conflictRetry is how often a name that somebody else has below is tried again. What is not ours is not watched.
	conflictRetry = 15 * time.Second
	// brokenTries is how often a step in a row must have failed by an error inside the cluster until users are told: for some three seconds.
	brokenTries = 6
)

// Reasons of the events that a syncer writes on objects of the logical cluster.
const (
	reasonConflict   = "NameTaken"
	reasonNotApplied = "ProjectionFailed"
	reasonWaiting    = "WaitingForCluster"
)

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
		s.fail(l.key, l.above, reasonNotApplied, p.why)
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
			err = s.delete(ctx, l.kind, l.live, p.removal)
		}
	case taskDelete:
		err = s.delete(ctx, l.kind, l.live, p.removal)
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
	if err := s.act(ctx, l.kind, p.action, p.desired, l.live); err != nil {
		return s.failed(l.key, l.above, err)
	}
	if step == projection.Replace || step == projection.Wait {
		s.done(l.key, l.kind, state{uid: l.above.GetUID()})
		return nil // the watch tells when the old one is gone
	}
	next := state{uid: l.above.GetUID(), generation: l.above.GetGeneration(), hash: hashOf(p.desired), wait: p.waits, note: note(p.missing)}
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
	return s.delete(ctx, kind, live, deletion{})
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

// failed notes an error where users see it, and returns it so that the step is tried again.
func (s *Syncer) failed(key identity.Key, above projection.Object, err error) error {
	var conflict *conflictError
	if errors.As(err, &conflict) {
		s.fail(key, above, reasonConflict, conflict.reason)
		s.queue.AddAfter(key, conflictRetry)
		return nil
	}
	if !passes(err) || Lasts(err, s.queue.NumRequeues(key)) {
		s.fail(key, above, reasonNotApplied, err.Error())
	}
	return err
}

// Lasts tells of an error that Passes whether it is to be shown all the same, after so many tries in a row. An error inside the cluster is
// the answer of one whose storage fails for a moment, but also of one with a webhook that cannot be called, which takes a person.
func Lasts(err error, tries int) bool {
	return apierrors.IsInternalError(err) && tries >= brokenTries
}

// Passes tells errors of requests to clusters that pass by themselves from those that a person must see.
func Passes(err error) bool { return passes(err) }

// passes tells errors that pass by themselves from those that a person must see. The caches may be a moment behind, or the cluster is
// silent, which its Ready condition tells.
func passes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return errors.Is(err, errNotYet) || errors.Is(err, context.Canceled) || unanswered(err)
	}
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}

// unanswered tells of an error that is no answer of the cluster: a request did not reach it, or its answer did not come back.
func unanswered(err error) bool {
	var request *url.Error
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || utilnet.IsConnectionRefused(err) ||
		errors.As(err, &request) || errors.As(err, &network) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
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
