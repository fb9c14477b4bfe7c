package syncer

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

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
	part, wanted, waits := s.part(kind, above, live)
	if !wanted && s.keepsAsItIs(kind, above, live) {
		return live, wait{}, nil // nothing that runs there asks for more, and who has marked it is not known
	}
	if !wanted && !s.stays(kind, above, live) || live == nil && kind.Ended(above) || s.over(kind, above) {
		return nil, wait{}, nil
	}
	if kind.Workload {
		part.API = s.Upstream.api(identity.Workload{Kind: kind, Object: above}, live)
		if s.Overrides != nil {
			if part.Overrides, err = s.Overrides(kind, above, s.cluster); err != nil {
				return nil, wait{}, err
			}
		}
	}
	if kind.Resource == namespaceResource {
		part.PodWebhooks = s.podWebhooks(above)
	}
	desired, err = kind.Project(above, part, s.target)
	return desired, waits, err
}

// part returns what this cluster is to hold now of an object, and whether anything.
func (s *Syncer) part(kind projection.Kind, above, live projection.Object) (part projection.Part, wanted bool, waits wait) {
	part, wanted = s.Upstream.part(kind, above, s.cluster)
	if kind.Workload && !kind.Mirror(above) {
		step := s.Upstream.Fleets.Next(identity.Workload{Kind: kind, Object: above}, s.cluster)
		part.Share, part.Waits, wanted = step.Share, step.Paced, !step.None
		waits = wait{held: step.Held, paced: step.Paced, reason: step.Reason, brief: step.Brief}
	}
	if part.Begins = s.begins(above, live); part.Begins != nil {
		waits.held = true
	}
	return part, wanted, waits
}

// keepsAsItIs reports whether a namespace that nothing asks for any more stays as it is: the cluster goes, and something is left in it.
func (s *Syncer) keepsAsItIs(kind projection.Kind, above, live projection.Object) bool {
	if kind.Resource != namespaceResource || live == nil || s.usesNamespace(above.GetName()) {
		return false
	}
	leaving, _ := s.Leaving(s.cluster)
	return !leaving || s.below.holdsIn(above.GetName())
}

// usesNamespace reports whether anything is in a namespace, or is to be, that needs no workload to come here.
func (s *Syncer) usesNamespace(name string) bool {
	if s.Uses != nil && s.Uses(s.cluster, name) {
		return true
	}
	leaving, _ := s.Leaving(s.cluster)
	return !leaving && s.Upstream.pinnedIn(name, s.cluster)
}

// stays reports whether the cluster is to hold an object although no workload that is placed here needs it.
func (s *Syncer) stays(kind projection.Kind, above, live projection.Object) bool {
	leaving, _ := s.Leaving(s.cluster)
	switch {
	case !leaving && (pinnedTo(kind, above, s.cluster) || s.Upstream.settledIn(kind, above, s.cluster)):
		return true
	case live == nil:
		return false
	case kind.Resource == namespaceResource && s.usesNamespace(above.GetName()):
		return true
	case !kind.Workload && !kind.Divided && s.usedByPods(kind, above):
		return true
	}
	return kind.Stays && !leaving && !s.waitsForNobody(kind, above, live)
}

// waitsForNobody tells of a volume claim that it came here while nothing used it, has no volume, and is used elsewhere now.
func (s *Syncer) waitsForNobody(kind projection.Kind, above, live projection.Object) bool {
	claim, ok := live.(*corev1.PersistentVolumeClaim)
	if _, settled := identity.DecisionOf(above)[s.cluster]; !ok || !settled || claim.Spec.VolumeName != "" || claim.Status.Phase == corev1.ClaimBound {
		return false
	}
	return s.Upstream.usedSomewhere(kind, above)
}

// over reports whether a workload has run to its end in a cluster that goes. Elsewhere what is there of it stays for people to look at.
func (s *Syncer) over(kind projection.Kind, above projection.Object) bool {
	leaving, _ := s.Leaving(s.cluster)
	return leaving && kind.Demand(above).Finished
}
