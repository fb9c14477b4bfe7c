package syncer

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// look is what is known of an object at the moment at which it is looked at: the one above and what the cluster holds of it, nil where there is
// none.
type look struct {
	key         identity.Key
	kind        projection.Kind
	above, live projection.Object
}

func (l look) workload() identity.Workload { return identity.Workload{Kind: l.kind, Object: l.above} }

// plan is what is to be done in the cluster about an object.
type plan struct {
	task task
	// why says what makes it so.
	why string
	// first is what has to be there before the task is carried out, in this order.
	first []need
	// desired is the projection, and waits what it has to wait for. They are set for taskProject alone, as is action: how the cluster comes by it.
	desired projection.Object
	action  projection.Action
	waits   wait
	// removal says how what the cluster holds is deleted, by taskDelete.
	removal writer.Deletion
}

// task is one way to deal with an object.
type task string

const (
	taskNothing task = "do nothing"
	// taskRefuse tells the user why the object above cannot be projected. It has to change first.
	taskRefuse task = "refuse"
	// taskAwait waits until a pod is gone from another cluster.
	taskAwait task = "wait"
	// taskLinger leaves the object as it is until whoever holds the one above by a finalizer lets it go.
	taskLinger task = "keep as it is"
	// taskProject brings the cluster to the projection.
	taskProject task = "project"
	// taskForget notes that the cluster holds nothing, or nothing of ours.
	taskForget task = "forget"
	// taskLeave deletes a pod that is to run elsewhere, if it has no node yet.
	taskLeave task = "leave"
	// taskDelete deletes the object, taskDeleteOwner without what it owns, and taskDeleteNamespace with what is in it, or lets go of a namespace
	// that somebody else uses.
	taskDelete          task = "delete"
	taskDeleteOwner     task = "delete, and keep what it owns"
	taskDeleteNamespace task = "delete the namespace"
)

// need is something that has to be there first.
type need string

const (
	needNamespace need = "its namespace"
	// needSecrets is the right to read Secrets in the namespace.
	needSecrets need = "rights to Secrets"
	// needGrants is a moment in which the ServiceAccount of what is about to be made may be given rights in the logical cluster.
	needGrants need = "rights above"
	// needVolume is the PersistentVolume of the logical cluster that a claim is for.
	needVolume need = "its volume"
	// needClasses are PriorityClasses and RuntimeClasses.
	needClasses need = "classes"
	// needBounds are ResourceQuotas and LimitRanges.
	needBounds need = "quotas"
	// needWebhooks says that the cluster asks the logical cluster about pods, where there are webhooks for them.
	needWebhooks need = "pod webhooks"
	// needUses is what pods use by name, such as Secrets, and that admission above takes what overrides make of them.
	needUses need = "what it names"
)

// String writes the plan for logs.
func (p plan) String() string {
	var out strings.Builder
	out.WriteString(string(p.task))
	if p.task == taskProject {
		fmt.Fprintf(&out, " (%s)", p.action.Step)
	}
	for i, n := range p.first {
		out.WriteString([]string{" after ", ", "}[min(i, 1)] + string(n))
	}
	if p.why != "" {
		out.WriteString(": " + p.why)
	}
	return out.String()
}

// plan says what is to be done about an object. It writes nothing.
func (s *Syncer) plan(l look) plan {
	if l.above != nil && l.kind.Lingers(l.above) {
		if s.lingers(l.kind, l.above, l.live) {
			return plan{task: taskLinger, why: "it is being deleted, and somebody holds it by a finalizer"}
		}
		return s.planRemoval(l)
	}
	desired, waits, err := s.desired(l.kind, l.above, l.live)
	if err != nil {
		return plan{task: taskRefuse, why: err.Error()}
	}
	if desired == nil {
		if why := s.leavesLater(l.kind, l.above); l.live == nil && why != "" {
			return plan{task: taskAwait, why: why}
		}
		return s.planRemoval(l)
	}
	l.kind.Keep(desired, l.live)
	p := plan{task: taskProject, desired: desired, waits: waits, action: l.kind.Plan(desired, l.live)}
	p.why, p.first = p.action.Reason, s.needs(l, p)
	return p
}

// needs returns what has to be there before a projection is made or changed.
func (s *Syncer) needs(l look, p plan) []need {
	out := []need{needNamespace}
	if l.kind.Resource == secretResource {
		out = append(out, needSecrets)
	}
	step := p.action.Step
	if step == projection.Create {
		out = append(out, needGrants)
	}
	if l.kind.Resource == claimResource && step == projection.Create {
		out = append(out, needVolume)
	}
	pods := makesPods(l.kind, step)
	if (pods || opens(l.kind, step)) && s.leftBehind(l.workload()) {
		return out // it comes to end pods, and makes none
	}
	if pods {
		out = append(out, needClasses, needBounds, needWebhooks)
	}
	if (pods || opens(l.kind, step)) && (l.live == nil || l.kind.MakesPods(p.desired, l.live)) {
		out = append(out, needUses)
	}
	return out
}

// planRemoval says how the cluster comes to hold nothing of an object. What belongs to another object than the one above of that name, such as an
// earlier one that was deleted meanwhile, goes too.
func (s *Syncer) planRemoval(l look) plan {
	switch {
	case l.live == nil:
		return plan{task: taskForget, why: "the cluster holds nothing of it"}
	case l.kind.Resource == namespaceResource && l.above != nil && l.above.GetDeletionTimestamp() != nil:
		return plan{task: taskNothing, why: "what is in the namespace goes first"}
	case s.goesElsewhere(l.kind, l.above, l.live):
		return plan{task: taskLeave, why: "it is to run in another cluster"}
	}
	origin := projection.Origin{LogicalCluster: s.target.LogicalCluster, Namespace: l.key.Namespace, Name: l.key.Name}
	if l.kind.Yields && (s.owners.Adopter(l.live) != nil || projection.Orphaned(l.live)) {
		origin, _ = projection.OriginOf(l.live) // its annotations are those of what took it over
	}
	action := projection.PlanRemoval(origin, l.live)
	p := plan{task: taskForget, why: action.Reason}
	switch {
	case action.Step == projection.Delete:
		p.task, p.removal = deletionOf(l)
	case action.Step == projection.Wait && hastened(l.above, l.live):
		p.task, p.removal = taskDelete, writer.Deletion{Grace: graceOf(l.above)}
	}
	return p
}

// deletionOf says how an object is deleted.
func deletionOf(l look) (task, writer.Deletion) {
	alone := writer.Deletion{Owned: metav1.DeletePropagationOrphan}
	switch {
	case l.kind.Resource == namespaceResource:
		return taskDeleteNamespace, writer.Deletion{}
	case l.above != nil && l.kind.Lives(l.above) && l.kind.Demand(l.live).Claims:
		return taskDelete, alone // the workload goes on elsewhere, so what it says about claims for its deletion does not apply
	case l.above != nil && l.kind.Workload && projection.Orphans(l.above):
		return taskDeleteOwner, alone
	}
	return taskDelete, writer.Deletion{Grace: graceOf(l.above)}
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

// opens reports whether a step has something in the cluster use Secrets by the names that an object of no workload kind gives.
func opens(kind projection.Kind, step projection.Step) bool {
	return kind.Resource == ingressResource && (step == projection.Create || step == projection.Apply)
}

// lingers reports whether the cluster keeps, as it is, a workload that is being deleted and that somebody holds by a finalizer. On a single
// cluster its pods go on running; its controller begins nothing, and keeps the status current. A cluster that is being removed does not
// wait for that somebody, and a namespace that is deleted takes the pods along.
func (s *Syncer) lingers(kind projection.Kind, above, live projection.Object) bool {
	leaving, _ := s.Leaving(s.cluster)
	return !leaving && !s.Upstream.NamespaceGoes(above.GetNamespace()) && kind.Lingers(above) && ours(live, identity.Workload{Kind: kind, Object: above}) &&
		s.counts(kind, above, live)
}

// givenUp reports whether the cluster is removed as one that is gone for good: what is there stays, and nothing above tells of it.
func (s *Syncer) givenUp() bool {
	leaving, manner := s.Leaving(s.cluster)
	return leaving && manner == v1alpha1.RemoveForce
}
