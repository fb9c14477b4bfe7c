package projection

import (
	"fmt"
)

// Step is what is to be done about one object in one cluster.
type Step string

const (
	// Nothing is to be done: the cluster holds what it should.
	Nothing Step = "Nothing"
	// Create the object: the cluster has none of that name.
	Create Step = "Create"
	// Apply the projection over the object.
	Apply Step = "Apply"
	// Replace deletes the object, with the precondition of its UID, and creates the projection once it is gone.
	Replace Step = "Replace"
	// Delete removes the object, with the precondition of its UID.
	Delete Step = "Delete"
	// Wait until the object, which is being deleted, is gone.
	Wait Step = "Wait"
	// Conflict leaves the object alone: it is not ours. The reason is for the user of the object upstream.
	Conflict Step = "Conflict"
)

// Action is a step and why it is taken.
type Action struct {
	// Step is what is to be done.
	Step Step
	// Reason says why, for logs, and for the user where the step is Conflict. It is stable while the cause is.
	Reason string
}

// Plan decides what brings live, what the cluster holds under the name now, to desired, a result of Project. Live is nil when the
// cluster holds nothing of that kind and name.
//
// An object that was deleted upstream and made anew, which its UID tells, has its workload replaced below as well, since its pods are
// not those of the new one, and so is a volume claim, whose data went with the old one. Other kinds are applied over, so that what reads
// them sees no gap, unless an immutable field differs.
//
// Drift is a field of the projection that live does not have or has another value for; see Covers. A live object that carries the
// hash of desired and covers it needs nothing.
func (k Kind) Plan(desired, live Object) Action {
	if isNil(live) {
		return Action{Create, "the cluster has none"}
	}
	want, _ := OriginOf(desired)
	have, owned := OriginOf(live)
	if !owned {
		if adoptable(desired) {
			return Action{Apply, "the cluster made it for a namespace that is ours"}
		}
		return Action{Conflict, k.unowned(live)}
	}
	if reason := k.otherOwner(want, have, live); reason != "" {
		return Action{Conflict, reason}
	}
	switch field := k.replace(desired, live); {
	case live.GetDeletionTimestamp() != nil:
		return Action{Wait, "it is being deleted"}
	case (k.Workload || k.Stays) && want.UID != have.UID:
		return Action{Replace, "it was deleted upstream and made anew"}
	case field != "":
		return Action{Replace, fmt.Sprintf("its field %s differs and cannot be changed", field)}
	case HashOf(desired) != HashOf(live):
		return Action{Apply, "it carries out another projection"}
	case !Covers(desired, live):
		return Action{Apply, "a projected field was changed in the cluster"}
	}
	return Action{Nothing, "it is as it should be"}
}

// Keep gives desired what live has in fields that cannot be changed in the state that live is in, so that the others can be. It is to
// be called before Plan. The fields are looked at again when they Thaw.
func (k Kind) Keep(desired, live Object) {
	if k.frozen != nil && !isNil(live) && k.frozen(live) {
		k.keep(desired, live)
	}
}

// Thaw reports whether fields of live can be changed now that could not be before.
func (k Kind) Thaw(before, after Object) bool {
	return k.frozen != nil && k.frozen(before) && !k.frozen(after)
}

// PlanRemoval decides what is to be done about live when nothing of its name should be in the cluster for the object that origin
// tells of. Something that is not that object's projection is none of our business. An empty UID in origin stands for any, which is
// for a name that is known to be gone upstream.
func PlanRemoval(origin Origin, live Object) Action {
	if isNil(live) {
		return Action{Nothing, "the cluster has none"}
	}
	have, owned := OriginOf(live)
	if origin.UID == "" {
		have.UID = ""
	}
	switch {
	case !owned || have != origin:
		return Action{Nothing, "it is not ours"}
	case live.GetDeletionTimestamp() != nil:
		return Action{Wait, "it is being deleted"}
	}
	return Action{Delete, "the cluster should not hold it"}
}

// unowned words the conflict with an object that is not marked.
func (k Kind) unowned(live Object) string {
	return fmt.Sprintf("the cluster already has a %s %s that Manifold does not own; who does is unknown: "+
		"delete or rename it there, or use another name here", k.GVK.Kind, qualified(live.GetNamespace(), live.GetName()))
}

// otherOwner words the conflict with an object that is marked, but not as the projection of the one wanted. It returns "" if it is.
func (k Kind) otherOwner(want, have Origin, live Object) string {
	name := qualified(live.GetNamespace(), live.GetName())
	switch {
	case want.LogicalCluster != have.LogicalCluster:
		return fmt.Sprintf("the %s %s in the cluster belongs to another logical cluster, %s: use another name, or delete it there first",
			k.GVK.Kind, name, have.LogicalCluster)
	case want.Namespace != have.Namespace || want.Name != have.Name:
		return fmt.Sprintf("the %s %s in the cluster is the projection of %s: use another name, or delete that one first",
			k.GVK.Kind, name, qualified(have.Namespace, have.Name))
	}
	return ""
}
