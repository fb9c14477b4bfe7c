package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var (
	claimResource       = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	statefulSetResource = appsv1.SchemeGroupVersion.WithResource("statefulsets")
)

// claimsFor returns the claims that a user has made under the names of those that a workload's templates stand for: its controller uses
// them, if they are there before it makes its own.
func (u *Upstream) ClaimsFor(w identity.Workload) []identity.Key {
	var out []identity.Key
	for _, claim := range u.ByIndex(ByFollowed, claimResource, w.Key()) {
		if _, uses := w.Kind.ClaimOrdinal(w.Object, claim.GetName()); uses {
			out = append(out, identity.Key{Resource: claimResource, Namespace: claim.GetNamespace(), Name: claim.GetName()})
		}
	}
	return out
}

// claimant returns the workload of that key if it uses the claim by name, or nil.
func (u *Upstream) Claimant(claim, of identity.Key) *identity.Workload {
	kind, ok := projection.ForResource(of.Resource)
	if !ok || !kind.Workload {
		return nil
	}
	above := u.Get(of)
	if above == nil {
		return nil
	}
	if _, uses := kind.ClaimOrdinal(above, claim.Name); !uses {
		return nil
	}
	return &identity.Workload{Kind: kind, Object: above}
}

// usedHere reports whether what a cluster runs of a workload uses an object. Of claims, each replica has its own.
func (u *Upstream) usedHere(w identity.Workload, obj projection.Object, cluster string) bool {
	if _, ok := obj.(*corev1.PersistentVolumeClaim); !ok {
		return true
	}
	ordinal, ok := w.Kind.ClaimOrdinal(w.Object, obj.GetName())
	if !ok {
		return true
	}
	one := placement.Range{Start: ordinal, End: ordinal + 1}
	if share, decided := identity.DecisionOf(w)[cluster]; decided && !identity.OrdinalsOf(w, share).Intersect(one).Empty() {
		return true
	}
	s, running := u.Syncer(cluster)
	if !running {
		return false
	}
	live := s.below.Get(w.Key())
	return live != nil && !numbersOf(w.Kind, live).Intersect(one).Empty()
}

// homeOf returns the cluster in which the replica is to run that uses the claim of that name, "" if there is none.
func (u *Upstream) HomeOf(namespace, claim string) string {
	for _, set := range projection.SetsOfClaim(claim) {
		w := u.Claimant(identity.Key{Resource: claimResource, Namespace: namespace, Name: claim},
			identity.Key{Resource: statefulSetResource, Namespace: namespace, Name: set})
		if w == nil {
			continue
		}
		ordinal, _ := w.Kind.ClaimOrdinal(w.Object, claim)
		for cluster, share := range identity.DecisionOf(w) {
			if !identity.OrdinalsOf(*w, share).Intersect(placement.Range{Start: ordinal, End: ordinal + 1}).Empty() {
				return cluster
			}
		}
	}
	return ""
}
