package guard

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// A cluster makes claims for the replicas of StatefulSets and for volumes of pods that come and go with them. What is above says which.

// CreateClaim returns why a cluster may not have a volume claim shown, nil if it may.
func (g Guard) CreateClaim(cluster string, claim *corev1.PersistentVolumeClaim) error {
	if err := g.Open(claim.Namespace); err != nil {
		return err
	}
	if identity.ShownFrom(claim) != cluster {
		return fmt.Errorf("it is not marked as a claim of cluster %q", cluster)
	}
	known, err := g.ClaimFor(cluster, claim)
	if err != nil {
		return err
	}
	if err := g.ownsClaim(cluster, claim, mirror.Told(claim.OwnerReferences)); err != nil {
		return err
	}
	if err := g.uidFree(identity.Claims, claim); err != nil {
		return err
	}
	return known.CheckClaim(claim, nil, cluster)
}

// UpdateClaim returns why a cluster may not write claim over stored, nil if it may.
func (g Guard) UpdateClaim(cluster string, claim, stored *corev1.PersistentVolumeClaim) error {
	if !g.Synced() {
		return ErrNotSeen
	}
	if claim.UID != stored.UID {
		return errors.New("its UID is that of another claim")
	}
	if identity.ShownFrom(stored) != cluster {
		return g.takesAway(cluster, claim, stored)
	}
	if identity.ShownFrom(claim) != cluster {
		return fmt.Errorf("metadata.annotations[%s]: it cannot be removed", v1alpha1.AnnotationCluster)
	}
	if !equality.Semantic.DeepEqual(mirror.Above(claim.OwnerReferences), mirror.Above(stored.OwnerReferences)) {
		return errors.New("metadata.ownerReferences: a cluster may change only owners that are pods or StatefulSets")
	}
	added := slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(ref metav1.OwnerReference) bool {
		return slices.ContainsFunc(stored.OwnerReferences, func(had metav1.OwnerReference) bool { return had.UID == ref.UID && had.Kind == ref.Kind })
	})
	if err := g.ownsClaim(cluster, claim, added); err != nil {
		return err
	}
	return mirror.Claim{}.CheckClaim(claim, stored, cluster)
}

// DeleteClaim returns why a cluster may not take the mirror of a claim away, nil if it may: its own, and that of another cluster which the
// replica has left for this one.
func (g Guard) DeleteClaim(cluster string, stored *corev1.PersistentVolumeClaim) error {
	switch showing := identity.ShownFrom(stored); {
	case showing == "":
		return errors.New("it is not a mirror")
	case showing != cluster && g.HomeOf(stored.Namespace, stored.Name) != cluster:
		return fmt.Errorf("it mirrors a claim of cluster %q", showing)
	}
	return nil
}

// takesAway returns why an update of the mirror of another cluster's claim is not the end of one whose replica has come to this cluster.
func (g Guard) takesAway(cluster string, claim, stored *corev1.PersistentVolumeClaim) error {
	if err := g.DeleteClaim(cluster, stored); err != nil {
		return err
	}
	like := stored.DeepCopy()
	like.Finalizers, like.ManagedFields, like.ResourceVersion = nil, claim.ManagedFields, claim.ResourceVersion
	if stored.DeletionTimestamp == nil || len(claim.Finalizers) > 0 || !equality.Semantic.DeepEqual(like, claim) {
		return fmt.Errorf("it mirrors a claim of cluster %q, and can only be deleted", identity.ShownFrom(stored))
	}
	return nil
}

// ClaimFor returns what is known above of a claim that a cluster has made.
func (g Guard) ClaimFor(cluster string, claim *corev1.PersistentVolumeClaim) (mirror.Claim, error) {
	for _, ref := range claim.OwnerReferences {
		if pod := g.PodAbove(claim.Namespace, ref, cluster); pod != nil {
			if known, ok := mirror.EphemeralClaim(pod, claim.Name); ok {
				return known, nil
			}
		}
	}
	why := errors.New("no StatefulSet of the logical cluster and no mirrored pod makes a claim of that name")
	for _, name := range projection.SetsOfClaim(claim.Name) {
		w := g.Maker(identity.Key{Resource: identity.Claims, Namespace: claim.Namespace, Name: claim.Name}, name)
		if w == nil {
			continue
		}
		ordinal, _ := w.Kind.ClaimOrdinal(w.Object, claim.Name)
		if why = g.placesOrdinal(cluster, *w, ordinal); why != nil {
			continue
		}
		set := w.Object.(*appsv1.StatefulSet)
		for i := range set.Spec.VolumeClaimTemplates {
			template := &set.Spec.VolumeClaimTemplates[i]
			if n, ok := projection.NumberedClaim(claim.Name, name, []string{template.Name}); ok && n == ordinal {
				return mirror.ReplicaClaim(template, set.Spec.Selector), nil
			}
		}
	}
	return mirror.Claim{}, why
}

// placesOrdinal returns why a cluster makes no claim for an ordinal of a StatefulSet: it neither is to run it nor did. A claim that is shown
// draws its replica to it, also when the StatefulSet grows to it later.
func (g Guard) placesOrdinal(cluster string, set identity.Workload, ordinal int32) error {
	if share, decided := identity.DecisionOf(set)[cluster]; decided && identity.OrdinalsOf(set, share).Contains(ordinal) {
		return nil
	}
	if !identity.Involves(set.Object, cluster) {
		return fmt.Errorf("StatefulSet %s is not placed in cluster %q", set.GetName(), cluster)
	}
	if had, ok := identity.ReportedOrdinals(set, cluster); ok && had.Contains(ordinal) {
		return g.ordinalOf(cluster, set, ordinal)
	}
	return fmt.Errorf("ordinal %d of StatefulSet %s is not placed in cluster %q", ordinal, set.GetName(), cluster)
}

// ownsClaim returns why the mirror of a claim cannot have these owners.
func (g Guard) ownsClaim(cluster string, claim *corev1.PersistentVolumeClaim, owners []metav1.OwnerReference) error {
	for _, ref := range owners {
		if g.PodAbove(claim.Namespace, ref, cluster) != nil {
			continue
		}
		set := g.Get(identity.Key{Resource: identity.StatefulSets, Namespace: claim.Namespace, Name: ref.Name})
		known := set != nil && set.GetUID() == ref.UID && ref.Kind == "StatefulSet" && projection.OwnsClaims(ref) && identity.Involves(set, cluster)
		if !known || !slices.Contains(projection.SetsOfClaim(claim.Name), ref.Name) {
			return fmt.Errorf("metadata.ownerReferences: there is no %s %s with UID %s in cluster %q that it could belong to", ref.Kind, ref.Name, ref.UID, cluster)
		}
	}
	return nil
}
