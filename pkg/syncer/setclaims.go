package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var (
	claimResource       = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	statefulSetResource = appsv1.SchemeGroupVersion.WithResource("statefulsets")
)

// claimsFor returns the claims that a user has made under the names of those that a workload's templates stand for: its controller uses
// them, if they are there before it makes its own.
func (u *Upstream) claimsFor(w workload) []Key {
	var out []Key
	for _, claim := range u.byIndex(byFollowed, claimResource, w.key()) {
		if _, uses := w.kind.ClaimOrdinal(w.Object, claim.GetName()); uses {
			out = append(out, Key{Resource: claimResource, Namespace: claim.GetNamespace(), Name: claim.GetName()})
		}
	}
	return out
}

// claimant returns the workload of that key if it uses the claim by name, or nil.
func (u *Upstream) claimant(claim, of Key) *workload {
	kind, ok := projection.ForResource(of.Resource)
	if !ok || !kind.Workload {
		return nil
	}
	above := u.get(of)
	if above == nil {
		return nil
	}
	if _, uses := kind.ClaimOrdinal(above, claim.Name); !uses {
		return nil
	}
	return &workload{kind, above}
}

// usedHere reports whether what a cluster runs of a workload uses an object. Of claims, each replica has its own.
func (u *Upstream) usedHere(w workload, obj projection.Object, cluster string) bool {
	if _, ok := obj.(*corev1.PersistentVolumeClaim); !ok {
		return true
	}
	ordinal, ok := w.kind.ClaimOrdinal(w.Object, obj.GetName())
	if !ok {
		return true
	}
	if share, decided := DecisionOf(w)[cluster]; decided && numbersIn(w, share).Contains(ordinal) {
		return true
	}
	s, running := u.Syncer(cluster)
	if !running {
		return false
	}
	live := s.below.get(w.key())
	return live != nil && numbersOf(w.kind, live).Contains(ordinal)
}

// numbersIn returns the ordinals of a share.
func numbersIn(w workload, share placement.Share) placement.Range {
	first := w.kind.Demand(w.Object).First + share.Start
	return placement.Range{Start: first, End: first + share.Replicas}
}

// homeOf returns the cluster in which the replica is to run that uses the claim of that name, "" if there is none.
func (u *Upstream) homeOf(namespace, claim string) string {
	for _, set := range projection.SetsOfClaim(claim) {
		w := u.claimant(Key{Resource: claimResource, Namespace: namespace, Name: claim},
			Key{Resource: statefulSetResource, Namespace: namespace, Name: set})
		if w == nil {
			continue
		}
		ordinal, _ := w.kind.ClaimOrdinal(w.Object, claim)
		for cluster, share := range DecisionOf(w) {
			if numbersIn(*w, share).Contains(ordinal) {
				return cluster
			}
		}
	}
	return ""
}
