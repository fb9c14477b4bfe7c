package copies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/heard"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
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
	// kept is the address from outside for whose sake a workload stays that leaves the cluster, nil for none, and unsure says that nobody can tell yet.
	kept   *moves.Address
	unsure bool
	// made is the projection, if the cluster is to hold one.
	made made
}

// sync brings one object of the cluster in line.
func (l *Loop) sync(ctx context.Context, key Key) error {
	seen, err := l.lookAt(ctx, key)
	if err != nil {
		return l.failed(seen, err)
	}
	p := l.plan(seen)
	klog.FromContext(ctx).V(4).Info("Planned", "key", key, "plan", p)
	if until := p.Waits.Until; !until.IsZero() {
		l.queue.AddAfter(key, until.Sub(l.Clock.Now()))
	}
	return l.carryOut(ctx, seen, p)
}

// lookAt gathers what there is of an object. The watch of its kind begins with the first that the cluster has to do with.
func (l *Loop) lookAt(ctx context.Context, key Key) (look, error) {
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
		return out, nil
	}
	if out.watch, out.refusal = l.watch(key, out.kind); out.watch != nil {
		out.live = out.watch.get(key)
	}
	l.keep(&out)
	var err error
	if out.projected() {
		out.made, err = l.desired(ctx, out)
	}
	return out, err
}

// projected reports whether the cluster is to hold the projection of the object, and shows what it has.
func (seen look) projected() bool {
	return seen.watch != nil && seen.wanted && !seen.orphans && seen.unread == nil && !seen.hold.Absent
}

// plan says what is to be done about an object.
func (l *Loop) plan(seen look) steps.Plan {
	switch {
	case len(seen.kind.Versions) == 0:
		return steps.Plan{Task: steps.Drop, Why: "nobody can say of it any more what should be"}
	case !seen.known, seen.givenUp:
		return steps.Plan{Task: steps.Nothing, Why: "it is not known what should be, or the cluster is given up"}
	case !seen.wanted && !seen.concerned && !seen.watched:
		return steps.Plan{Task: steps.Forget, Why: "there is nothing of the kind here"}
	case seen.watch == nil && seen.refusal == "":
		return steps.Plan{Task: steps.Nothing, Why: "the watch tells when it has shown everything"}
	case seen.watch == nil && (seen.wanted || seen.had(l.cluster) && l.serves(seen.kind)):
		return steps.Plan{Task: steps.Refuse, Why: seen.refusal}
	case seen.watch == nil:
		return steps.Plan{Task: steps.Forget, Why: seen.refusal}
	case seen.orphans && seen.live == nil:
		return steps.Plan{Task: steps.Nothing, Why: "there is nothing to let go of"}
	case seen.orphans:
		return steps.Plan{Task: steps.Orphan, Why: "the cluster leaves with what it has"}
	case seen.wanted:
		return l.planProjection(seen)
	}
	return l.planRemoval(seen)
}

// planProjection says what the cluster is to hold of an object that is to be here.
func (l *Loop) planProjection(seen look) steps.Plan {
	switch {
	case seen.unread != nil:
		return steps.Plan{Task: steps.Hold, Why: seen.unread.Error()}
	case seen.hold.Absent:
		return steps.Plan{Task: steps.Keep, Why: "the revision that the cluster is to hold has nothing of it"}
	}
	desired := seen.made.desired
	action := seen.row().Plan(desired, seen.live)
	if accepted := seen.made.accepted; action.Step == projection.Apply && hashOf(seen.live) == hashOf(desired) &&
		accepted != 0 && accepted == seen.live.GetGeneration() {
		action = projection.Action{Step: projection.Nothing, Reason: "it is what the cluster makes of it"}
	}
	p := steps.Plan{Task: steps.Project, Desired: desired, Action: action, Why: action.Reason, First: []steps.Need{steps.NeedNamespace}}
	if seen.kind.Paths != nil && l.Lacks != nil && (seen.live == nil || seen.row().MakesPods(desired, seen.live)) {
		p.First = append(p.First, steps.NeedUses)
	}
	return p
}

// planRemoval says how the cluster comes to hold nothing of an object. While that moves, the copy stays until the others are there.
func (l *Loop) planRemoval(seen look) steps.Plan {
	switch {
	case seen.live == nil:
		return steps.Plan{Task: steps.Forget, Why: "the cluster holds nothing of it"}
	case seen.above != nil && !seen.arrived:
		return steps.Plan{Task: steps.Nothing, Why: "it stays until the others are there, whose report brings us back"}
	}
	origin := projection.Origin{LogicalCluster: l.target.LogicalCluster, Namespace: seen.key.Namespace, Name: seen.key.Name}
	action := projection.PlanRemoval(origin, seen.live)
	if action.Step != projection.Delete {
		return steps.Plan{Task: steps.Nothing, Why: action.Reason}
	}
	if why, until := l.drains(seen); why != "" {
		return steps.Plan{Task: steps.Nothing, Why: why, Waits: states.Wait{Until: until}}
	}
	return steps.Plan{Task: steps.Delete, Why: action.Reason}
}

// had reports whether a cluster has had a copy of an object, as far as that tells.
func (seen look) had(cluster string) bool {
	return seen.above != nil && identity.CopiesOf(seen.above)[cluster].Generation > 0
}

// row is how the object is projected, in the version that is watched in the cluster.
func (seen look) row() projection.Kind { return seen.kind.Row(seen.watch.version) }

// carryOut does what was planned about an object, and notes what came of it.
func (l *Loop) carryOut(ctx context.Context, seen look, p steps.Plan) error {
	switch p.Task {
	case steps.Drop:
		l.unwatch(seen.key.Resource)
		l.done(seen.key, states.State{})
	case steps.Forget:
		l.done(seen.key, states.State{Copy: states.Copy{Absent: seen.concerned}})
		l.unwatchUnused(seen.key)
	case steps.Refuse:
		l.fail(seen, steps.ReasonNotApplied, p.Why)
	case steps.Orphan:
		return l.writer(seen).Orphan(ctx, seen.live)
	case steps.Delete:
		klog.FromContext(ctx).V(2).Info("Removing", "key", seen.key, "reason", p.Why)
		l.queue.AddAfter(seen.key, steps.LookAgain)
		return l.failed(seen, l.writer(seen).Delete(ctx, seen.live, p.Removal))
	case steps.Keep:
		l.done(seen.key, seen.state())
	case steps.Hold:
		if errors.Is(seen.unread, held.ErrUnreadable) {
			return l.failed(seen, seen.unread)
		}
		return writer.ErrNotYet
	case steps.Project:
		return l.failed(seen, l.project(ctx, seen, p))
	}
	return nil
}

// state is what a step with an object that is to be here comes to, as long as the cluster does not hold its projection.
func (seen look) state() states.State {
	return states.State{
		UID: seen.above.UID, Generation: seen.above.Generation,
		Revision: seen.hold.Revision.String(), Copy: states.Copy{Older: seen.hold.Older, Excluded: seen.hold.Absent},
	}
}

// writer returns what writes an object to the cluster, in the version that is watched there.
func (l *Loop) writer(seen look) writer.Writer {
	resource := seen.kind.Resource.WithVersion(seen.watch.version)
	return writer.Writer{
		Kind:   seen.row(),
		Client: writer.Dynamic{ResourceInterface: l.client.Resource(resource).Namespace(seen.key.Namespace)},
	}
}

// project brings the cluster to the projection of an object, once everything is there that this needs.
func (l *Loop) project(ctx context.Context, seen look, p steps.Plan) error {
	for _, n := range p.First {
		if there, err := l.meet(ctx, seen, p, n); !there || err != nil {
			return err
		}
	}
	step := p.Action.Step
	if step != projection.Nothing {
		klog.FromContext(ctx).V(2).Info("Projecting", "key", seen.key, "step", step, "reason", p.Why)
	}
	result, err := l.writer(seen).Act(ctx, p.Action, p.Desired, seen.live)
	if err != nil {
		return err
	}
	if step != projection.Nothing && step != projection.Wait {
		l.queue.AddAfter(seen.key, steps.LookAgain)
	}
	if step == projection.Replace || step == projection.Wait {
		l.done(seen.key, states.State{UID: seen.above.UID, Generation: seen.above.Generation})
		return nil // the watch tells when the old one is gone
	}
	last := seen.made
	if result != nil {
		last.accepted = result.GetGeneration()
	}
	l.made.note(seen.key, last)
	next := seen.state()
	next.Hash, next.Routes = hashOf(last.desired), routesIn(last.desired)
	l.done(seen.key, next)
	return nil
}

// meet reports whether something that a projection needs is there, and sees to it where that can be done. What is not there has the step tried again.
func (l *Loop) meet(ctx context.Context, seen look, p steps.Plan, n steps.Need) (there bool, err error) {
	switch n {
	case steps.NeedNamespace:
		err := l.EnsureNamespace(ctx, l.cluster, seen.key.Namespace)
		return err == nil, err
	case steps.NeedUses:
		of := identity.Workload{Kind: seen.kind.Row(seen.kind.Versions[0]), Object: p.Desired}
		problem, waits, err := l.Lacks(ctx, l.cluster, of, p.Desired)
		if err != nil || problem == "" && !waits {
			return err == nil, err
		}
		if problem != "" && l.queue.NumRequeues(seen.key) >= lacking.RequiredTries {
			l.fail(seen, lacking.Reason, problem)
		}
		return false, writer.ErrNotYet
	}
	return false, fmt.Errorf("copies of custom resources do not wait for %s", n)
}

// desired returns the projection of an object. The object is read, in the version that the cluster is sent, if it may give another one than the last.
func (l *Loop) desired(ctx context.Context, seen look) (made, error) {
	kind, above, last := seen.row(), seen.above, l.made.of(seen.key)
	if last.serves(kind.GVK, above, seen.hold.Hash) {
		return made{above: above, desired: last.desired, content: seen.hold.Hash, accepted: last.accepted}, nil
	}
	whole, err := l.Client.Resource(kind.Resource).Namespace(above.Namespace).Get(ctx, above.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return made{}, writer.ErrNotYet
	case err != nil:
		return made{}, fmt.Errorf("read it in the logical cluster: %w", err)
	case whole.GetUID() != above.UID || whole.GetGeneration() < above.Generation:
		return made{}, writer.ErrNotYet
	}
	var version projection.Object = whole
	if seen.hold.Content != nil {
		content, err := kind.Content(seen.hold.Content)
		if err == nil {
			version, err = kind.As(whole, content)
		}
		if err != nil {
			return made{}, fmt.Errorf("hold it at revision %q: %w", seen.hold.Revision.Name, err)
		}
	}
	decision := identity.DecisionOf(above)
	desired, err := kind.Project(version, projection.Part{Share: decision[l.cluster], Decision: decision}, l.target)
	if err != nil {
		return made{}, err
	}
	next := made{above: above, desired: desired.(*unstructured.Unstructured), content: seen.hold.Hash}
	if hashOf(next.desired) == hashOf(last.desired) {
		next.accepted = last.accepted
	}
	return next, nil
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
	var uid types.UID
	if seen.above != nil {
		uid = seen.above.UID
	}
	if !l.states.Fail(seen.key, uid, message) {
		return
	}
	l.Above.Changed(seen.key, false)
	if seen.above != nil {
		steps.Warn(l.Recorder, seen.kind.Reference(seen.above), l.cluster, reason, message)
	}
}
