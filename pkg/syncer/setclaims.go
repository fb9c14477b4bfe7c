package syncer

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// usedHere reports whether what a cluster runs of a workload uses an object. Of claims, each replica has its own.
func (u *Upstream) usedHere(w identity.Workload, obj projection.Object, cluster string) bool {
	if _, ok := obj.(*corev1.PersistentVolumeClaim); !ok {
		return true
	}
	ordinal, ok := w.Kind.ClaimOrdinal(w.Object, obj.GetName())
	if !ok {
		return true
	}
	if share, decided := identity.DecisionOf(w)[cluster]; decided && identity.OrdinalsOf(w, share).Contains(ordinal) {
		return true
	}
	s, running := u.Syncer(cluster)
	if !running {
		return false
	}
	live := s.below.Get(w.Key())
	return live != nil && numbersOf(w.Kind, live).Contains(ordinal)
}
