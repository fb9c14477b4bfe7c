package steps

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// Plan is what is to be done in a cluster about an object, of a built-in or a custom kind.
type Plan struct {
	Task Task
	// Why says what makes it so.
	Why string
	// First is what has to be there before the task is carried out, in this order.
	First []Need
	// Desired is the projection, and Waits what it has to wait for. They are set for Project alone, as is Action: how the cluster comes by it; but
	// Waits.Until also says when to look again at what stays as it is.
	Desired projection.Object
	Action  projection.Action
	Waits   states.Wait
	// Ending says, for Project alone, how far the pods are on their way that the projection does not ask for any more.
	Ending Ending
	// Removal says how what the cluster holds is deleted, by Delete.
	Removal writer.Deletion
}

// Ending says how far the controller of numbered pods in a cluster is with ending some.
type Ending struct {
	// Goes says that some are left.
	Goes bool
	// Stuck are those to be ended for it, which it does not get to.
	Stuck []*corev1.Pod
}

// Task is one way to deal with an object.
type Task string

// Tasks for objects of any kind.
const (
	Nothing Task = "do nothing"
	// Refuse tells the user why the cluster cannot have the object. Something has to change first.
	Refuse Task = "refuse"
	// Hold leaves the object as it is until the revision can be read that the cluster is to hold.
	Hold Task = "keep as it is until its revision can be read"
	// Project brings the cluster to the projection.
	Project Task = "project"
	// Forget notes that the cluster holds nothing, or nothing of ours.
	Forget Task = "forget"
	// Delete deletes the object.
	Delete Task = "delete"
	// Orphan takes our marks off the object, which is nobody's business of ours from then on.
	Orphan Task = "let go of it"
)

// Tasks for objects of built-in kinds.
const (
	// Await waits until a pod is gone from another cluster.
	Await Task = "wait"
	// Linger leaves the object as it is until whoever holds the one above by a finalizer lets it go.
	Linger Task = "keep as it is"
	// Leave deletes a pod that is to run elsewhere, if it has no node yet.
	Leave Task = "leave"
	// DeleteOwner deletes an object without what it owns.
	DeleteOwner Task = "delete, and keep what it owns"
	// DeleteNamespace deletes a namespace with what is in it, or lets go of one that somebody else uses.
	DeleteNamespace Task = "delete the namespace"
)

// Tasks for objects of built-in kinds by which what was begun earlier comes to its end. Nothing else is decided about an object before that.
const (
	// AwaitWrite waits until the watch shows what was written last, by which something is reserved.
	AwaitWrite Task = "wait for the watch"
	// Release drops what is reserved. That bears on everything else, so the object is looked at again.
	Release Task = "drop the reservation"
	// Show has the logical cluster show a pod that outlives its owner, and Mark writes our marks again on a ReplicaSet that does.
	Show Task = "have it shown as the user's own"
	Mark Task = "mark it again"
	// HandOver leaves an object to the controller in the cluster that has taken it over.
	HandOver Task = "leave it to its controller"
)

// Tasks for custom resources.
const (
	// Drop forgets a kind that is gone.
	Drop Task = "drop the kind"
	// Keep leaves a copy as it is, if there is one: nothing is to be here, and nothing is deleted before the object is.
	Keep Task = "keep what there is"
)

// Need is something that has to be there first.
type Need string

const (
	NeedNamespace Need = "its namespace"
	// NeedSecrets is the right to read Secrets in the namespace.
	NeedSecrets Need = "rights to Secrets"
	// NeedGrants is a moment in which the ServiceAccount of what is about to be made may be given rights in the logical cluster.
	NeedGrants Need = "rights above"
	// NeedVolume is the PersistentVolume of the logical cluster that a claim is for.
	NeedVolume Need = "its volume"
	// NeedClasses are PriorityClasses and RuntimeClasses.
	NeedClasses Need = "classes"
	// NeedBounds are ResourceQuotas and LimitRanges.
	NeedBounds Need = "quotas"
	// NeedWebhooks says that the cluster asks the logical cluster about pods, where there are webhooks for them.
	NeedWebhooks Need = "pod webhooks"
	// NeedUses is what pods use by name, such as Secrets, and that admission above takes what overrides make of them.
	NeedUses Need = "what it names"
)

// String writes the plan for logs.
func (p Plan) String() string {
	var out strings.Builder
	out.WriteString(string(p.Task))
	if p.Task == Project {
		fmt.Fprintf(&out, " (%s)", p.Action.Step)
	}
	for i, n := range p.First {
		out.WriteString([]string{" after ", ", "}[min(i, 1)] + string(n))
	}
	if p.Why != "" {
		out.WriteString(": " + p.Why)
	}
	return out.String()
}
