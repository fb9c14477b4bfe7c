package custom

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// sync brings one object of the cluster in line.
func (l *loop) sync(ctx context.Context, key Key) error {
	k, above, known := l.get(key)
	leaving, manner := l.Leaving(l.cluster)
	switch {
	case len(k.versions) == 0:
		l.unwatch(key.Resource) // nobody can say of it any more what should be
		l.setState(key, state{})
		return nil
	case !known, leaving && manner == v1alpha1.RemoveForce:
		return nil
	}
	wanted := false
	if above != nil && projection.Lives(above) && (above.DeletionTimestamp == nil || !leaving) {
		_, wanted = decisionOf(above)[l.cluster]
	}
	if !wanted && !l.isWatched(key.Resource) && !l.concerned(above) {
		l.setState(key, state{})
		return nil // there is nothing of the kind here
	}
	w, reason := l.watch(key, k)
	if w == nil {
		l.unseen(k, key, above, wanted, reason)
		return nil
	}
	live := w.get(key)
	switch {
	case leaving && manner == v1alpha1.RemoveOrphan:
		if live == nil {
			return nil
		}
		return l.writer(w, k, key).Orphan(ctx, live)
	case !wanted:
		return l.remove(ctx, k, key, w, above, live)
	}
	return l.failed(k, key, above, l.project(ctx, k, key, w, above, live))
}

// writer returns what writes an object to the cluster, in the version that is watched there.
func (l *loop) writer(w *watch, k kind, key Key) writer.Writer {
	return writer.Writer{
		Kind:   projection.Custom(k.in(w.version), k.resource.Resource),
		Client: writer.Dynamic{ResourceInterface: l.client.Resource(k.resource.WithVersion(w.version)).Namespace(key.Namespace)},
	}
}

// concerned reports whether an object says that the cluster has, or is to have, a copy.
func (l *loop) concerned(above *metav1.PartialObjectMetadata) bool {
	return above != nil && slices.Contains(concernedClusters(above), l.cluster)
}

// unseen notes that the cluster does not show what it has of a kind, for a reason or not yet.
func (l *loop) unseen(k kind, key Key, above *metav1.PartialObjectMetadata, wanted bool, reason string) {
	switch {
	case reason == "":
		return // the watch tells when it has shown everything
	case wanted || above != nil && breakdownOf(above)[l.cluster].Generation > 0 && !l.unserved(key):
		l.fail(k, key, above, steps.ReasonNotApplied, reason)
	default:
		l.setState(key, state{absent: l.concerned(above)})
		l.unwatchUnused(key)
	}
}

// project has the cluster hold the projection.
func (l *loop) project(ctx context.Context, k kind, key Key, w *watch, above *metav1.PartialObjectMetadata, live *unstructured.Unstructured) error {
	last := l.stateOf(key)
	out := l.writer(w, k, key)
	kind, desired := out.Kind, last.desired
	if desired == nil || desired.GroupVersionKind() != kind.GVK || !sameProjection(last.above, above) {
		var err error
		if desired, err = l.desired(ctx, kind, w, above); err != nil {
			return err
		}
		if hashOf(desired) != hashOf(last.desired) {
			last.accepted = 0
		}
	}
	s, running := l.Upstream.Syncer(l.cluster)
	if !running || !s.HasSynced() {
		return writer.ErrNotYet
	}
	if err := s.EnsureNamespace(ctx, key.Namespace); err != nil {
		return err
	}
	next := state{above: above, desired: desired, accepted: last.accepted}
	action := projection.Action{Step: projection.Create, Reason: "the cluster has none"}
	if live != nil {
		action = kind.Plan(desired, live)
	}
	if action.Step == projection.Apply && hashOf(live) == hashOf(desired) && last.accepted != 0 && last.accepted == live.GetGeneration() {
		action = projection.Action{Step: projection.Nothing, Reason: "it is what the cluster makes of it"}
	}
	if action.Step != projection.Nothing {
		klog.FromContext(ctx).V(2).Info("Projecting", "key", key, "step", action.Step, "reason", action.Reason)
	}
	result, err := out.Act(ctx, action, desired, live)
	if err != nil {
		return err
	}
	if result != nil {
		next.accepted = result.GetGeneration()
	}
	if action.Step == projection.Replace || action.Step == projection.Wait {
		next = state{above: above}
	}
	l.setState(key, next)
	return nil
}

// desired reads the object in the version that the cluster is sent, and projects it.
func (l *loop) desired(ctx context.Context, kind projection.Kind, w *watch, above *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	whole, err := l.Client.Resource(kind.Resource).Namespace(above.Namespace).Get(ctx, above.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, writer.ErrNotYet
	}
	if err != nil {
		return nil, fmt.Errorf("read it in the logical cluster: %w", err)
	}
	if whole.GetUID() != above.UID || whole.GetGeneration() < above.Generation {
		return nil, writer.ErrNotYet
	}
	desired, err := kind.Project(whole, projection.Part{}, l.target)
	if err != nil {
		return nil, err
	}
	return desired.(*unstructured.Unstructured), nil
}

// sameProjection reports whether two versions of an object give the same projection.
func sameProjection(before, after *metav1.PartialObjectMetadata) bool {
	return before != nil && before.UID == after.UID && before.Generation == after.Generation && maps.Equal(before.Labels, after.Labels) &&
		projection.SameAnnotations(before, after)
}

// remove deletes what the cluster should not have. While an object moves, its copy stays until the others are there.
func (l *loop) remove(ctx context.Context, k kind, key Key, w *watch, above *metav1.PartialObjectMetadata, live *unstructured.Unstructured) error {
	if live == nil {
		l.setState(key, state{absent: l.concerned(above)})
		l.unwatchUnused(key)
		return nil
	}
	if above != nil && above.DeletionTimestamp == nil && !l.arrived(key, above) {
		return nil // the report of the others brings us back
	}
	origin := projection.Origin{LogicalCluster: l.target.LogicalCluster, Namespace: key.Namespace, Name: key.Name}
	action := projection.PlanRemoval(origin, live)
	if action.Step != projection.Delete {
		return nil
	}
	klog.FromContext(ctx).V(2).Info("Removing", "key", key, "of", uidOf(above), "reason", action.Reason)
	return l.failed(k, key, above, l.writer(w, k, key).Delete(ctx, live, writer.Deletion{}))
}

// arrived reports whether all clusters of a decision have their copies. Without any there is nothing to wait for.
func (l *loop) arrived(key Key, above *metav1.PartialObjectMetadata) bool {
	for cluster := range decisionOf(above) {
		other := l.loop(cluster)
		if other == nil || other.report(key).Generation == 0 {
			return false
		}
	}
	return true
}

// failed notes an error where users see it, and returns what has the step tried again.
func (l *loop) failed(k kind, key Key, above *metav1.PartialObjectMetadata, err error) error {
	return l.queue.Failed(key, err, func(reason, message string) {
		if lacksRight(err) {
			message = l.rightless(k)
		}
		l.fail(k, key, above, reason, message)
	})
}

// lacksRight reports whether the cluster's RBAC forbids something, and not a rule of its own about objects.
func lacksRight(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot ")
}

// rightless says that our rights in the cluster do not suffice, and what to do about it.
func (l *loop) rightless(k kind) string {
	return fmt.Sprintf("Manifold has no right to manage %[1]s there; to give it: manifold cluster join %[2]s --cluster-kubeconfig FILE --allow-kind %[1]s",
		k.resource, l.cluster)
}

// fail makes a problem visible: as an event on the object, and in its breakdown.
func (l *loop) fail(k kind, key Key, above *metav1.PartialObjectMetadata, reason, message string) {
	message = summary.Text(message) // a cluster may have worded it
	if l.stateOf(key).problem == message {
		return
	}
	l.setState(key, state{problem: message})
	if above != nil {
		l.Recorder.Event(referenceTo(k, above), corev1.EventTypeWarning, reason, fmt.Sprintf("cluster %q: %s", l.cluster, message))
	}
}

func hashOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return obj.GetAnnotations()[v1alpha1.AnnotationProjection]
}
