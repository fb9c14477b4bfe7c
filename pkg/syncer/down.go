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
	"github.com/manifold-dev/manifold/pkg/placement"
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

// sync brings one object of the cluster in line.
func (s *Syncer) sync(ctx context.Context, key identity.Key) error {
	if key.Resource == priorityResource {
		return s.syncPriority(ctx, key)
	}
	if key.Resource == volumeResource {
		return s.syncVolume(ctx, key)
	}
	kind, ok := projection.ForResource(key.Resource)
	if !ok {
		return fmt.Errorf("no projection for %s", key)
	}
	above, live := s.Upstream.Get(key), s.below.Get(key)
	if kind.Resource == claimResource {
		s.claimLooked(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	}
	if kind.Resource == namespaceResource && projection.NamespaceShared(key.Name) {
		return nil
	}
	if s.givenUp() {
		return nil
	}
	if silentSecret(key) {
		var err error
		if live, err = s.below.secrets.look(ctx, cache.ObjectName{Namespace: key.Namespace, Name: key.Name}); err != nil {
			return s.failed(key, above, err)
		}
	}
	if leaving, manner := s.Leaving(s.cluster); leaving && manner == v1alpha1.RemoveOrphan {
		return s.orphan(ctx, kind, live)
	}
	if err := s.settleClaim(ctx, kind, key, live); err != nil {
		return s.failed(key, above, err)
	}
	if waits, err := s.orphans.Settle(ctx, kind, above, live); waits || err != nil {
		return err
	}
	if left, err := s.handedOver(ctx, kind, above, live); left || err != nil {
		if err != nil {
			return s.failed(key, above, err)
		}
		s.done(key, kind, state{})
		return nil
	}
	if above != nil && kind.Lingers(above) {
		if !s.lingers(kind, above, live) {
			return s.remove(ctx, kind, key, above, live)
		}
		next := state{uid: above.GetUID(), generation: above.GetGeneration(), hash: hashOf(live)}
		s.keepTold(identity.Workload{Kind: kind, Object: above}, &next)
		s.done(key, kind, next)
		return nil
	}
	s.forgetLost(kind, above, live)
	desired, waits, err := s.desired(kind, above, live)
	if err != nil {
		s.fail(key, above, reasonNotApplied, err.Error())
		return nil // the object must change before another try makes sense
	}
	if desired == nil && live == nil && s.awaits(kind, key, above) {
		return nil // what happens there wakes us
	}
	if desired == nil {
		return s.remove(ctx, kind, key, above, live)
	}
	if err := s.ensureNamespace(ctx, desired.GetNamespace()); err != nil {
		return s.failed(key, above, err)
	}
	if kind.Resource == secretResource {
		s.below.secrets.follow(desired.GetNamespace(), true)
	}
	kind.Keep(desired, live)
	action := kind.Plan(desired, live)
	if action.Step == projection.Create && s.queue.NumRequeues(key) < grantTries && s.Upstream.mayBeGranted(identity.Workload{Kind: kind, Object: above}) {
		return errNotYet
	}
	if kind.Resource == claimResource && action.Step == projection.Create {
		if waits, problem := s.awaitsVolume(key, above); problem != "" {
			s.fail(key, above, reasonNotApplied, problem)
			return nil // what comes of the volume wakes us
		} else if waits {
			return nil
		}
	}
	missing := s.missing(kind, above)
	if makesPods(kind, action.Step) && !s.leftBehind(identity.Workload{Kind: kind, Object: above}) {
		if reason, waits := s.classRefusal(key, missing); waits {
			return nil // it is on its way, and what comes of it wakes us
		} else if reason != "" {
			s.fail(key, above, reasonClassMissing, reason)
			if len(s.missing(kind, above)) == 0 {
				return errNotYet // it came meanwhile
			}
			return nil // the watch tells when it comes
		}
		if !s.bounded(identity.Workload{Kind: kind, Object: above}) || !s.asksAbove(above.GetNamespace()) {
			return errNotYet
		}
	}
	if held, err := s.heldBack(ctx, identity.Workload{Kind: kind, Object: above}, action.Step, desired, live); held || err != nil {
		if err != nil {
			return s.failed(key, above, err)
		}
		return nil // what it waits for wakes us
	}
	if action.Step != projection.Nothing {
		klog.FromContext(ctx).V(2).Info("Projecting", "key", key, "step", action.Step, "reason", action.Reason)
	}
	if action.Step == projection.Create || action.Step == projection.Apply {
		s.Upstream.claims.written(key, s.cluster, hashOf(desired))
	}
	if err := s.act(ctx, kind, action, desired, live); err != nil {
		return s.failed(key, above, err)
	}
	if action.Step == projection.Replace || action.Step == projection.Wait {
		s.done(key, kind, state{uid: above.GetUID()})
		return nil // the watch tells when the old one is gone
	}
	next := state{uid: above.GetUID(), generation: above.GetGeneration(), hash: hashOf(desired), wait: waits, note: note(missing)}
	s.noteTold(kind, above, desired, key, &next)
	if waits.reason != "" && waits.reason != s.stateOf(key).reason {
		s.Recorder.Eventf(above, corev1.EventTypeNormal, reasonWaiting, "cluster %q %s", s.cluster, waits.reason)
	}
	s.tellNote(key, above, next.note)
	s.done(key, kind, next)
	return nil
}

// makesPods reports whether a step leads to pods that were not there.
func makesPods(kind projection.Kind, step projection.Step) bool {
	return kind.Workload && (step == projection.Create || step == projection.Apply)
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

// givenUp reports whether the cluster is removed as one that is gone for good: what is there stays, and nothing above tells of it.
func (s *Syncer) givenUp() bool {
	leaving, manner := s.Leaving(s.cluster)
	return leaving && manner == v1alpha1.RemoveForce
}

// desired returns the projection for this cluster, or nil if it should hold none, and what it has to wait for.
func (s *Syncer) desired(kind projection.Kind, above, live projection.Object) (desired projection.Object, waits wait, err error) {
	if above == nil || !kind.Lives(above) {
		return nil, wait{}, nil
	}
	if ok, _ := kind.Projectable(above); !ok && !kind.Workload {
		return nil, wait{}, nil // before who needs it is searched for: every workload of a namespace may name it
	}
	if kind.Workload && !s.counts(kind, above, live) {
		live = nil // whoever has put it there, it keeps nothing
	}
	part, wanted := s.Upstream.part(kind, above, s.cluster)
	if !wanted && (pinnedTo(kind, above, s.cluster) || s.Upstream.settledIn(kind, above, s.cluster)) {
		leaving, _ := s.Leaving(s.cluster)
		wanted = !leaving
	}
	if kind.Workload && !kind.Mirror(above) && (live == nil || s.has(identity.Workload{Kind: kind, Object: above})) {
		if step, held := s.step(identity.Workload{Kind: kind, Object: above}, live); held {
			part.Share, wanted, waits.held = step, true, true
		}
	}
	if part.Begins = s.begins(above, live); part.Begins != nil {
		waits.held = true
	}
	if w := (identity.Workload{Kind: kind, Object: above}); kind.Demand(above).Ordinals {
		switch {
		case wanted:
			part, waits = s.numbered(w, live, part)
		case s.toEmpty(w, live):
			part.Share, waits = s.turn(w, live, placement.Share{})
			wanted, waits.held = true, true
		}
	} else if reason := s.turnOf(w, live, part.Decision); wanted && reason != "" {
		part.Waits, waits.paced, waits.reason = true, true, reason
	}
	if kind.Resource == namespaceResource && live != nil {
		// A namespace stays as long as the user's does: others may keep things in it by now. Only with the cluster it goes, last.
		leaving, _ := s.Leaving(s.cluster)
		wanted = wanted || s.Uses != nil && s.Uses(s.cluster, above.GetName()) || !leaving && s.Upstream.pinnedIn(above.GetName(), s.cluster)
		if !wanted && (!leaving || s.below.holdsIn(above.GetName())) {
			return live, wait{}, nil // as it is: nothing that runs there asks for more, and who has marked it is not known
		}
	}
	if !wanted && live != nil && !kind.Workload && !kind.Divided && s.usedByPods(kind, above) {
		wanted = true
	}
	if kind.Stays && live != nil {
		leaving, _ := s.Leaving(s.cluster)
		wanted = wanted || !leaving && !s.waitsForNobody(kind, above, live)
	}
	if !wanted || live == nil && kind.Ended(above) || s.over(kind, above) {
		return nil, wait{}, nil
	}
	if kind.Workload && s.Overrides != nil {
		if part.Overrides, err = s.Overrides(kind, above, s.cluster); err != nil {
			return nil, wait{}, err
		}
	}
	if kind.Workload {
		part.API = s.Upstream.api(identity.Workload{Kind: kind, Object: above}, live)
	}
	if kind.Resource == namespaceResource {
		part.PodWebhooks = s.podWebhooks(above)
	}
	desired, err = kind.Project(above, part, s.target)
	return desired, waits, err
}

// waitsForNobody tells of a volume claim that it came here while nothing used it, has no volume, and is used elsewhere now.
func (s *Syncer) waitsForNobody(kind projection.Kind, above, live projection.Object) bool {
	claim, ok := live.(*corev1.PersistentVolumeClaim)
	if _, settled := identity.DecisionOf(above)[s.cluster]; !ok || !settled || claim.Spec.VolumeName != "" || claim.Status.Phase == corev1.ClaimBound {
		return false
	}
	return s.Upstream.usedSomewhere(kind, above)
}

// lingers reports whether the cluster keeps, as it is, a workload that is being deleted and that somebody holds by a finalizer. On a single
// cluster its pods go on running; its controller begins nothing, and keeps the status current. A cluster that is being removed does not
// wait for that somebody, and a namespace that is deleted takes the pods along.
func (s *Syncer) lingers(kind projection.Kind, above, live projection.Object) bool {
	leaving, _ := s.Leaving(s.cluster)
	return !leaving && !s.Upstream.NamespaceGoes(above.GetNamespace()) && kind.Lingers(above) && ours(live, identity.Workload{Kind: kind, Object: above}) &&
		s.counts(kind, above, live)
}

// over reports whether a workload has run to its end in a cluster that goes. Elsewhere what is there of it stays for people to look at.
func (s *Syncer) over(kind projection.Kind, above projection.Object) bool {
	leaving, _ := s.Leaving(s.cluster)
	return leaving && kind.Demand(above).Finished
}

// remove deletes what the cluster should not hold. What belongs to another object than the one above of that name, such as an earlier
// one that was deleted meanwhile, goes too.
func (s *Syncer) remove(ctx context.Context, kind projection.Kind, key identity.Key, above, live projection.Object) error {
	s.unwait(key)
	if live == nil {
		s.done(key, kind, state{})
		s.ended(key, above)
		return nil
	}
	if kind.Resource == namespaceResource && above != nil && above.GetDeletionTimestamp() != nil {
		return nil // its content goes first
	}
	if s.goesElsewhere(kind, above, live) {
		if err := s.leave(ctx, kind, above, live); err != nil {
			return s.failed(key, above, err)
		}
		s.done(key, kind, state{})
		return nil
	}
	origin := projection.Origin{LogicalCluster: s.target.LogicalCluster, Namespace: key.Namespace, Name: key.Name}
	if kind.Yields && (s.owners.Adopter(live) != nil || projection.Orphaned(live)) {
		origin, _ = projection.OriginOf(live) // its annotations are those of what took it over
	}
	action := projection.PlanRemoval(origin, live)
	if action.Step != projection.Nothing {
		klog.FromContext(ctx).V(2).Info("Removing", "key", key, "step", action.Step, "reason", action.Reason)
	}
	var err error
	switch {
	case kind.Resource == namespaceResource && action.Step == projection.Delete:
		err = s.removeNamespace(ctx, kind, live)
	case action.Step == projection.Delete && above != nil && kind.Lives(above) && kind.Demand(live).Claims:
		// The workload goes on elsewhere, so what it says about claims for its deletion does not apply.
		err = s.delete(ctx, kind, live, deletion{owned: metav1.DeletePropagationOrphan})
	case action.Step == projection.Delete && above != nil && kind.Workload && projection.Orphans(above):
		if err = s.orphans.Abandon(ctx, kind, live); err == nil {
			err = s.delete(ctx, kind, live, deletion{owned: metav1.DeletePropagationOrphan})
		}
	case action.Step == projection.Delete, action.Step == projection.Wait && hastened(above, live):
		err = s.delete(ctx, kind, live, deletion{grace: graceOf(above)})
	}
	if err != nil {
		return s.failed(key, above, err)
	}
	s.done(key, kind, state{})
	return nil
}

// graceOf is how long the user lets a deleted object end, nil where that is left to the object.
func graceOf(above projection.Object) *int64 {
	if above == nil {
		return nil
	}
	return above.GetDeletionGracePeriodSeconds()
}

// hastened reports whether the user gives an object that is ending less time than it has below.
func hastened(above, live projection.Object) bool {
	wanted, granted := graceOf(above), live.GetDeletionGracePeriodSeconds()
	return wanted != nil && granted != nil && *wanted < *granted
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
