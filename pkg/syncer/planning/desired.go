package planning

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// concerns reports whether the cluster may have anything of an object: it is there, lives on, and awaits no release here.
func (c *Planner) concerns(kind projection.Kind, above projection.Object) bool {
	return above != nil && kind.Lives(above) && !identity.AwaitsIn(above, c.Name)
}

// wants reports whether the cluster is to hold anything of an object, whatever its content.
func (c *Planner) wants(l Look) bool {
	if !c.concerns(l.Kind, l.Above) {
		return false
	}
	_, wanted, _ := c.part(l.Kind, l.Above, l.Live)
	return wanted || c.stays(l.Kind, l.Above, l.Live)
}

// Takes reports whether the cluster is to hold an object that follows workloads: it is wanted here, and it can be here.
func (c *Planner) Takes(l Look) bool {
	projectable, _ := l.Kind.Projectable(l.Above)
	return projectable && c.wants(l)
}

// Desired returns the projection for this cluster, or nil if it should hold none, and what it has to wait for.
func (c *Planner) Desired(l Look) (desired projection.Object, waits states.Wait, err error) {
	kind, above, live := l.Kind, l.Above, l.Live
	if !c.concerns(kind, above) {
		return nil, states.Wait{}, nil
	}
	if ok, _ := kind.Projectable(above); !ok && !kind.Workload {
		return nil, states.Wait{}, nil // before who needs it is searched for: every workload of a namespace may name it
	}
	if kind.Workload && !c.Counts(kind, above, live) {
		live = nil // whoever has put it there, it keeps nothing
	}
	part, wanted, waits := c.part(kind, above, live)
	if !wanted && c.keepsAsItIs(kind, above, live) {
		return live, states.Wait{}, nil // nothing that runs there asks for more, and who has marked it is not known
	}
	if !wanted && !c.stays(kind, above, live) || live == nil && kind.Ended(above) || c.over(kind, above) {
		return nil, states.Wait{}, nil
	}
	if kind.Workload {
		part.API = c.Access.Of(identity.Workload{Kind: kind, Object: above}, live)
		if c.Overrides != nil {
			if part.Overrides, err = c.Overrides(kind, above, c.Name); err != nil {
				return nil, states.Wait{}, err
			}
		}
	}
	part.Revision = l.Revision
	if kind.Resource == identity.Namespaces {
		part.PodWebhooks = c.PodWebhooks(above)
	}
	desired, err = kind.Project(above, part, c.Target())
	if err != nil {
		return nil, waits, err
	}
	if part.LeftOut = kind.LeftOut(desired, live, c.Demand.Offers); len(part.LeftOut) > 0 {
		desired, err = kind.Project(above, part, c.Target())
	}
	return desired, waits, err
}

// part returns what this cluster is to hold now of an object, and whether anything.
func (c *Planner) part(kind projection.Kind, above, live projection.Object) (part projection.Part, wanted bool, waits states.Wait) {
	part, wanted = c.Demand.Part(kind, above, c.Name)
	if kind.Workload && !kind.Mirror(above) {
		step := c.Fleets.Next(identity.Workload{Kind: kind, Object: above}, c.Name)
		part.Share, part.Waits, wanted = step.Share, step.Paced, !step.None
		waits = states.Wait{
			Held: step.Held, Paced: step.Paced, Reason: step.Reason, Brief: step.Brief, Addressed: step.Addressed, Until: step.Until,
		}
	}
	part.Inward = part.Inward && !c.stays(kind, above, live)
	if part.Begins = c.begins(above, live); part.Begins != nil {
		waits.Held = true
	}
	return part, wanted, waits
}

// Inward reports whether the cluster has an object for what runs there alone, and is not to make it reached from outside. Live is what it has of it.
func (c *Planner) Inward(kind projection.Kind, above, live projection.Object) bool {
	part, wanted := c.Demand.Part(kind, above, c.Name)
	return wanted && part.Inward && !c.stays(kind, above, live)
}

// keepsAsItIs reports whether a namespace that nothing asks for any more stays as it is: the cluster goes, and something is left in it.
func (c *Planner) keepsAsItIs(kind projection.Kind, above, live projection.Object) bool {
	if kind.Resource != identity.Namespaces || live == nil || c.usesNamespace(above.GetName()) {
		return false
	}
	return !c.Terms.Leaves() || c.HoldsIn(above.GetName())
}

// usesNamespace reports whether anything is in a namespace, or is to be, that needs no workload to come here.
func (c *Planner) usesNamespace(name string) bool {
	if c.Uses != nil && c.Uses(c.Name, name) {
		return true
	}
	return !c.Terms.Leaves() && c.Demand.PinnedIn(name, c.Name)
}

// stays reports whether the cluster is to hold an object although no workload that is placed here needs it.
func (c *Planner) stays(kind projection.Kind, above, live projection.Object) bool {
	leaving := c.Terms.Leaves()
	switch {
	case !leaving && (demand.PinnedTo(kind, above, c.Name) || c.Demand.SettledIn(kind, above, c.Name)):
		return true
	case live == nil:
		return false
	case kind.Resource == identity.Namespaces && c.usesNamespace(above.GetName()):
		return true
	case !kind.Workload && !kind.Divided && c.usedByPods(kind, above):
		return true
	}
	return kind.Stays && !leaving && !c.waitsForNobody(kind, above, live)
}

// waitsForNobody tells of a volume claim that it came here while nothing used it, has no volume, and is used elsewhere now.
func (c *Planner) waitsForNobody(kind projection.Kind, above, live projection.Object) bool {
	claim, ok := live.(*corev1.PersistentVolumeClaim)
	if _, settled := identity.DecisionOf(above)[c.Name]; !ok || !settled || claim.Spec.VolumeName != "" || claim.Status.Phase == corev1.ClaimBound {
		return false
	}
	return c.Demand.UsedSomewhere(kind, above)
}

// over reports whether a workload has run to its end in a cluster that goes. Elsewhere what is there of it stays for people to look at.
func (c *Planner) over(kind projection.Kind, above projection.Object) bool {
	return c.Terms.Leaves() && kind.Demand(above).Finished
}
