package copies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/heard"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// look is what is known of an object at the moment at which it is looked at.
type look struct {
	key  Key
	kind Kind
	// above is the metadata of the object, nil if there is none. Known is false as long as that is not known.
	above *metav1.PartialObjectMetadata
	known bool
	// orphans tells that the cluster leaves with what it has, and givenUp that it is gone for good.
	orphans, givenUp bool
	// wanted tells that the cluster is to have a copy, concerned that the object names it as one that has one, or is to, and watched that the
	// cluster shows what it has of the kind, or is about to.
	wanted, concerned, watched bool
	// hold is what the cluster is to hold of a wanted object, and unread why that is not known.
	hold   held.Hold
	unread error
	// arrived tells that the clusters which are to have copies have them.
	arrived bool
	// watch shows what the cluster has of the kind, and live is that. Until it has shown everything, watch is nil, and refusal says why if that
	// does not pass.
	watch   *watch
	refusal string
	live    *unstructured.Unstructured
}

// plan is what is to be done in the cluster about an object, and why.
type plan struct {
	task task
	why  string
}

type task string

const (
	taskNothing task = "do nothing"
	// taskDrop forgets the kind, which is gone.
	taskDrop task = "drop the kind"
	// taskForget notes that the cluster has nothing of the object.
	taskForget task = "forget"
	// taskRefuse tells the user why the cluster cannot have the object, or what became of it.
	taskRefuse  task = "refuse"
	taskOrphan  task = "let go of it"
	taskDelete  task = "delete"
	taskProject task = "project"
	// taskKeep leaves the copy as it is, if there is one: nothing is to be here, and nothing is deleted before the object is.
	taskKeep task = "keep what there is"
	// taskHold leaves the copy as it is until it is known what it is to be.
	taskHold task = "keep as it is"
)

// sync brings one object of the cluster in line.
func (l *Loop) sync(ctx context.Context, key Key) error {
	seen := l.lookAt(key)
	p := l.plan(seen)
	klog.FromContext(ctx).V(4).Info("Planned", "key", key, "task", p.task, "reason", p.why)
	return l.carryOut(ctx, seen, p)
}

// lookAt gathers what there is of an object. The watch of its kind begins with the first that the cluster has to do with.
func (l *Loop) lookAt(key Key) look {
	out := look{key: key}
	out.kind, out.above, out.known = l.Above.Get(key)
	leaving, manner := l.Leaving(l.cluster)
	out.orphans, out.givenUp = leaving && manner == v1alpha1.RemoveOrphan, leaving && manner == v1alpha1.RemoveForce
	out.watched = l.isWatched(key.Resource)
	if above := out.above; above != nil {
		out.concerned = slices.Contains(identity.CopiedTo(above), l.cluster)
		if projection.Lives(above) && (above.DeletionTimestamp == nil || !leaving) {
			_, out.wanted = identity.DecisionOf(above)[l.cluster]
			if out.wanted && l.Holds != nil && len(out.kind.Versions) > 0 {
				out.hold, out.unread = l.Holds(out.kind.GVK().GroupKind(), above, l.cluster)
			}
		}
		out.arrived = above.DeletionTimestamp != nil || out.wanted || l.arrived(key, above)
	}
	if len(out.kind.Versions) == 0 || !out.known || out.givenUp || !out.wanted && !out.concerned && !out.watched {
		return out
	}
	if out.watch, out.refusal = l.watch(key, out.kind); out.watch != nil {
		out.live = out.watch.get(key)
	}
	return out
}

// plan says what is to be done about an object.
func (l *Loop) plan(seen look) plan {
	switch {
	case len(seen.kind.Versions) == 0:
		return plan{taskDrop, "nobody can say of it any more what should be"}
	case !seen.known, seen.givenUp:
		return plan{taskNothing, "it is not known what should be, or the cluster is given up"}
	case !seen.wanted && !seen.concerned && !seen.watched:
		return plan{taskForget, "there is nothing of the kind here"}
	case seen.watch == nil && seen.refusal == "":
		return plan{taskNothing, "the watch tells when it has shown everything"}
	case seen.watch == nil && (seen.wanted || seen.had(l.cluster) && l.serves(seen.kind)):
		return plan{taskRefuse, seen.refusal}
	case seen.watch == nil:
		return plan{taskForget, seen.refusal}
	case seen.orphans && seen.live == nil:
		return plan{taskNothing, "there is nothing to let go of"}
	case seen.orphans:
		return plan{taskOrphan, "the cluster leaves with what it has"}
	case seen.wanted:
		return seen.planProjection()
	}
	return l.planRemoval(seen)
}

// planProjection says what the cluster is to hold of an object that is to be here.
func (seen look) planProjection() plan {
	switch {
	case seen.unread != nil:
		return plan{taskHold, seen.unread.Error()}
	case seen.hold.Absent:
		return plan{taskKeep, "the revision that the cluster is to hold has nothing of it"}
	}
	return plan{taskProject, "it is to be here"}
}

// planRemoval says how the cluster comes to hold nothing of an object. While that moves, the copy stays until the others are there.
func (l *Loop) planRemoval(seen look) plan {
	switch {
	case seen.live == nil:
		return plan{taskForget, "the cluster holds nothing of it"}
	case seen.above != nil && !seen.arrived:
		return plan{taskNothing, "it stays until the others are there, whose report brings us back"}
	}
	origin := projection.Origin{LogicalCluster: l.target.LogicalCluster, Namespace: seen.key.Namespace, Name: seen.key.Name}
	action := projection.PlanRemoval(origin, seen.live)
	if action.Step != projection.Delete {
		return plan{taskNothing, action.Reason}
	}
	return plan{taskDelete, action.Reason}
}

// had reports whether a cluster has had a copy of an object, as far as that tells.
func (seen look) had(cluster string) bool {
	return seen.above != nil && identity.CopiesOf(seen.above)[cluster].Generation > 0
}

// carryOut does what was planned about an object, and notes what came of it.
func (l *Loop) carryOut(ctx context.Context, seen look, p plan) error {
	switch p.task {
	case taskDrop:
		l.unwatch(seen.key.Resource)
		l.setState(seen.key, state{})
	case taskForget:
		l.setState(seen.key, state{absent: seen.concerned})
		l.unwatchUnused(seen.key)
	case taskRefuse:
		l.fail(seen, steps.ReasonNotApplied, p.why)
	case taskOrphan:
		return l.writer(seen).Orphan(ctx, seen.live)
	case taskDelete:
		klog.FromContext(ctx).V(2).Info("Removing", "key", seen.key, "reason", p.why)
		return l.failed(seen, l.writer(seen).Delete(ctx, seen.live, writer.Deletion{}))
	case taskKeep:
		l.setState(seen.key, state{above: seen.above, hold: seen.hold})
	case taskHold:
		if errors.Is(seen.unread, held.ErrUnreadable) {
			return l.failed(seen, seen.unread)
		}
		return writer.ErrNotYet
	case taskProject:
		return l.failed(seen, l.project(ctx, seen))
	}
	return nil
}

// writer returns what writes an object to the cluster, in the version that is watched there.
func (l *Loop) writer(seen look) writer.Writer {
	resource := seen.kind.Resource.WithVersion(seen.watch.version)
	return writer.Writer{
		Kind:   seen.kind.Row(seen.watch.version),
		Client: writer.Dynamic{ResourceInterface: l.client.Resource(resource).Namespace(seen.key.Namespace)},
	}
}

// project has the cluster hold the projection.
func (l *Loop) project(ctx context.Context, seen look) error {
	out, last := l.writer(seen), l.stateOf(seen.key)
	next, err := l.desired(ctx, out.Kind, seen.above, seen.hold, last)
	if err != nil {
		return err
	}
	if err := l.EnsureNamespace(ctx, l.cluster, seen.key.Namespace); err != nil {
		return err
	}
	if held, err := l.heldBack(ctx, seen, next.desired); held || err != nil {
		return err
	}
	action := out.Kind.Plan(next.desired, seen.live)
	if action.Step == projection.Apply && hashOf(seen.live) == hashOf(next.desired) && next.accepted != 0 && next.accepted == seen.live.GetGeneration() {
		action = projection.Action{Step: projection.Nothing, Reason: "it is what the cluster makes of it"}
	}
	if action.Step != projection.Nothing {
		klog.FromContext(ctx).V(2).Info("Projecting", "key", seen.key, "step", action.Step, "reason", action.Reason)
	}
	result, err := out.Act(ctx, action, next.desired, seen.live)
	if err != nil {
		return err
	}
	if result != nil {
		next.accepted = result.GetGeneration()
	}
	if action.Step == projection.Replace || action.Step == projection.Wait {
		next = state{above: seen.above} // the watch tells when the old one is gone
	}
	l.setState(seen.key, next)
	return nil
}

// heldBack reports whether a copy that leads to pods has to wait for what these need.
func (l *Loop) heldBack(ctx context.Context, seen look, desired *unstructured.Unstructured) (held bool, err error) {
	if seen.kind.Paths == nil || l.Lacks == nil {
		return false, nil
	}
	of := identity.Workload{Kind: seen.kind.Row(seen.kind.Versions[0]), Object: desired}
	if seen.live != nil && !of.Kind.MakesPods(desired, seen.live) {
		return false, nil
	}
	problem, waits, err := l.Lacks(ctx, l.cluster, of, desired)
	if err != nil || problem == "" && !waits {
		return false, err
	}
	if problem != "" && l.queue.NumRequeues(seen.key) >= lacking.RequiredTries {
		l.fail(seen, lacking.Reason, problem)
	}
	return true, writer.ErrNotYet
}

// desired returns the projection of an object, as the state in which the cluster has it. The object is read, in the version that the cluster is
// sent, if it may give another one than the last.
func (l *Loop) desired(ctx context.Context, kind projection.Kind, above *metav1.PartialObjectMetadata, hold held.Hold, last state) (state, error) {
	if last.desired != nil && last.desired.GroupVersionKind() == kind.GVK && sameProjection(last.above, above) && last.hold.Hash == hold.Hash {
		return state{above: above, desired: last.desired, hold: hold, accepted: last.accepted}, nil
	}
	whole, err := l.Client.Resource(kind.Resource).Namespace(above.Namespace).Get(ctx, above.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return state{}, writer.ErrNotYet
	case err != nil:
		return state{}, fmt.Errorf("read it in the logical cluster: %w", err)
	case whole.GetUID() != above.UID || whole.GetGeneration() < above.Generation:
		return state{}, writer.ErrNotYet
	}
	var version projection.Object = whole
	if hold.Content != nil {
		content, err := kind.Content(hold.Content)
		if err == nil {
			version, err = kind.As(whole, content)
		}
		if err != nil {
			return state{}, fmt.Errorf("hold it at revision %q: %w", hold.Revision.Name, err)
		}
	}
	decision := identity.DecisionOf(above)
	desired, err := kind.Project(version, projection.Part{Share: decision[l.cluster], Decision: decision}, l.target)
	if err != nil {
		return state{}, err
	}
	next := state{above: above, desired: desired.(*unstructured.Unstructured), hold: hold}
	if hashOf(next.desired) == hashOf(last.desired) {
		next.accepted = last.accepted
	}
	return next, nil
}

// sameProjection reports whether two versions of an object give the same projection.
func sameProjection(before, after *metav1.PartialObjectMetadata) bool {
	return before != nil && before.UID == after.UID && before.Generation == after.Generation && maps.Equal(before.Labels, after.Labels) &&
		projection.SameAnnotations(before, after) &&
		before.Annotations[v1alpha1.AnnotationPlacement] == after.Annotations[v1alpha1.AnnotationPlacement]
}

// failed notes an error where users see it, and returns what has the step tried again.
func (l *Loop) failed(seen look, err error) error {
	return l.queue.Failed(seen.key, err, func(reason, message string) {
		if heard.LacksRight(err) {
			message = l.rightless(seen.kind)
		}
		l.fail(seen, reason, message)
	})
}

// rightless says that our rights in the cluster do not suffice, and what to do about it.
func (l *Loop) rightless(k Kind) string {
	return fmt.Sprintf("Manifold has no right to manage %[1]s there; to give it: manifold cluster join %[2]s --cluster-kubeconfig FILE --allow-kind %[1]s",
		k.Resource, l.cluster)
}

// fail makes a problem visible: as an event on the object, and in its breakdown.
func (l *Loop) fail(seen look, reason, message string) {
	message = summary.Text(message) // a cluster may have worded it
	if l.stateOf(seen.key).problem == message {
		return
	}
	l.setState(seen.key, state{problem: message})
	if above := seen.above; above != nil {
		l.Recorder.Event(seen.kind.Reference(above), corev1.EventTypeWarning, reason, fmt.Sprintf("cluster %q: %s", l.cluster, message))
	}
}
