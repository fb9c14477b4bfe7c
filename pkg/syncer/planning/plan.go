package planning

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// Look is what is known of an object at the moment at which it is looked at: the one above and what the cluster holds of it, nil where there is
// none.
type Look struct {
	Key         identity.Key
	Kind        projection.Kind
	Above, Live projection.Object
	// Revision is the mark of the revision at which the cluster is to hold the object, "" for the object as it stands. Above is the object at that
	// revision.
	Revision string
	// Unread is why that cannot be read, nil if it can. Above is the object as it stands then.
	Unread error

	// Reservation says how the last write stands by which something is reserved for the cluster, and Orphan what is to be done about an object that
	// outlives its owner.
	Reservation Reservation
	Orphan      mirrors.Orphan
	// HandedOver tells that a controller in the cluster has taken the object over.
	HandedOver bool
}

// Reservation says how a write stands by which something is reserved for a cluster.
type Reservation int

const (
	// NothingReserved is for most objects at most times.
	NothingReserved Reservation = iota
	// Unseen is a write that the watch is about to show.
	Unseen
	// Over is one that the watch has shown, or that has not happened.
	Over
)

func (l Look) Workload() identity.Workload { return identity.Workload{Kind: l.Kind, Object: l.Above} }

// Plan says what is to be done about an object. It writes nothing.
func (c *Planner) Plan(l Look) steps.Plan {
	if first, unsettled := c.settle(l); unsettled {
		return first
	}
	if l.Above != nil && l.Kind.Lingers(l.Above) {
		if c.Lingers(l.Kind, l.Above, l.Live) {
			return steps.Plan{Task: steps.Linger, Why: "it is being deleted, and somebody holds it by a finalizer"}
		}
		return c.planRemoval(l)
	}
	if l.Unread != nil && c.wants(l) {
		return steps.Plan{Task: steps.Hold, Why: l.Unread.Error()}
	}
	desired, waits, err := c.Desired(l)
	if err != nil {
		return steps.Plan{Task: steps.Refuse, Why: err.Error()}
	}
	if desired == nil {
		if why := c.leavesLater(l.Kind, l.Above); l.Live == nil && why != "" {
			return steps.Plan{Task: steps.Await, Why: why}
		}
		return c.planRemoval(l)
	}
	l.Kind.Keep(desired, l.Live)
	p := steps.Plan{Task: steps.Project, Desired: desired, Waits: waits, Action: l.Kind.Plan(desired, l.Live)}
	p.Why, p.First = p.Action.Reason, c.Needs(l, p)
	if p.Action.Step == projection.Nothing {
		p.Ending = c.Ending(l)
	}
	return p
}

// settle says what comes before all else, if anything does: what was begun with the object earlier comes to its end, and what is not ours any more is
// left alone.
func (c *Planner) settle(l Look) (first steps.Plan, unsettled bool) {
	switch {
	case c.Terms.LeftAsItIs() && l.Live == nil:
		return steps.Plan{Task: steps.Nothing, Why: "there is nothing to let go of"}, true
	case c.Terms.LeftAsItIs():
		return steps.Plan{Task: steps.Orphan, Why: "the cluster leaves with what it has"}, true
	case l.Reservation == Unseen:
		return steps.Plan{Task: steps.AwaitWrite, Why: "the watch is about to show what was written last"}, true
	case l.Reservation == Over:
		return steps.Plan{Task: steps.Release, Why: "the watch shows what was written last, or nothing was"}, true
	case l.Orphan == mirrors.OrphanUnshown:
		return steps.Plan{Task: steps.Show, Why: "it outlives its owner, and the logical cluster does not have it as its own yet"}, true
	case l.Orphan == mirrors.OrphanOverwritten:
		return steps.Plan{Task: steps.Mark, Why: "the controller of its owner has written over its marks"}, true
	case l.Orphan == mirrors.OrphanWaits:
		return steps.Plan{Task: steps.Nothing, Why: "it outlives its owner, which is not gone yet or still has it above"}, true
	case l.HandedOver:
		return steps.Plan{Task: steps.HandOver, Why: "a controller in the cluster has taken it over"}, true
	}
	return steps.Plan{}, false
}

// Needs returns what has to be there before a projection is made or changed.
func (c *Planner) Needs(l Look, p steps.Plan) []steps.Need {
	out := []steps.Need{steps.NeedNamespace}
	if l.Kind.Resource == identity.Secrets {
		out = append(out, steps.NeedSecrets)
	}
	step := p.Action.Step
	if step == projection.Create {
		out = append(out, steps.NeedGrants)
	}
	if l.Kind.Resource == identity.Claims && step == projection.Create {
		out = append(out, steps.NeedVolume)
	}
	pods := makesPods(l.Kind, step)
	if (pods || opens(l.Kind, step)) && c.Demand.LeftBehind(l.Workload(), c.Name) {
		return out // it comes to end pods, and makes none
	}
	if pods {
		out = append(out, steps.NeedClasses, steps.NeedBounds, steps.NeedWebhooks)
	}
	if (pods || opens(l.Kind, step)) && (l.Live == nil || l.Kind.MakesPods(p.Desired, l.Live)) {
		out = append(out, steps.NeedUses)
	}
	return out
}

// planRemoval says how the cluster comes to hold nothing of an object. What belongs to another object than the one above of that name, such as an
// earlier one that was deleted meanwhile, goes too.
func (c *Planner) planRemoval(l Look) steps.Plan {
	switch {
	case l.Live == nil:
		return steps.Plan{Task: steps.Forget, Why: "the cluster holds nothing of it"}
	case l.Kind.Resource == identity.Namespaces && l.Above != nil && l.Above.GetDeletionTimestamp() != nil:
		return steps.Plan{Task: steps.Nothing, Why: "what is in the namespace goes first"}
	case c.GoesElsewhere(l.Kind, l.Above, l.Live):
		return steps.Plan{Task: steps.Leave, Why: "it is to run in another cluster"}
	}
	origin := projection.Origin{LogicalCluster: c.LogicalCluster, Namespace: l.Key.Namespace, Name: l.Key.Name}
	if l.Kind.Yields && (c.Owners.Adopter(l.Live) != nil || projection.Orphaned(l.Live)) {
		origin, _ = projection.OriginOf(l.Live) // its annotations are those of what took it over
	}
	action := projection.PlanRemoval(origin, l.Live)
	p := steps.Plan{Task: steps.Forget, Why: action.Reason}
	switch {
	case action.Step == projection.Delete:
		p.Task, p.Removal = deletionOf(l)
	case action.Step == projection.Wait && hastened(l.Above, l.Live):
		p.Task, p.Removal = steps.Delete, writer.Deletion{Grace: graceOf(l.Above)}
	}
	return p
}

// deletionOf says how an object is deleted.
func deletionOf(l Look) (steps.Task, writer.Deletion) {
	alone := writer.Deletion{Owned: metav1.DeletePropagationOrphan}
	switch {
	case l.Kind.Resource == identity.Namespaces:
		return steps.DeleteNamespace, writer.Deletion{}
	case l.Above != nil && l.Kind.Lives(l.Above) && l.Kind.Demand(l.Live).Claims:
		return steps.Delete, alone // the workload goes on elsewhere, so what it says about claims for its deletion does not apply
	case l.Above != nil && l.Kind.Workload && projection.Orphans(l.Above):
		return steps.DeleteOwner, alone
	}
	return steps.Delete, writer.Deletion{Grace: graceOf(l.Above)}
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

// makesPods reports whether a step leads to pods that were not there.
func makesPods(kind projection.Kind, step projection.Step) bool {
	return kind.Workload && (step == projection.Create || step == projection.Apply)
}

// opens reports whether a step has something in the cluster use what an object of no workload kind names: the Secrets and Services of an Ingress,
// the Service that endpoints are added to, the claim that another one is a copy of.
func opens(kind projection.Kind, step projection.Step) bool {
	switch kind.Resource {
	case identity.Ingresses, identity.Endpoints, identity.EndpointSlices:
		return step == projection.Create || step == projection.Apply
	case identity.Claims:
		return step == projection.Create
	}
	return false
}

// Lingers reports whether the cluster keeps, as it is, a workload that is being deleted and that somebody holds by a finalizer. On a single
// cluster its pods go on running; its controller begins nothing, and keeps the status current. A cluster that is being removed does not
// wait for that somebody, and a namespace that is deleted takes the pods along.
func (c *Planner) Lingers(kind projection.Kind, above, live projection.Object) bool {
	return !c.Terms.Leaves() && !c.Demand.NamespaceGoes(above.GetNamespace()) && kind.Lingers(above) && trust.Ours(live, identity.Workload{Kind: kind, Object: above}) &&
		c.Counts(kind, above, live)
}
