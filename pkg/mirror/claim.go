package mirror

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Claim is what is known above of a volume claim that a controller makes in a cluster.
type Claim struct {
	// Labels are those of its template, with those that its controller adds.
	Labels map[string]string
	// Owners are those of its template. They are objects above, so the cluster knows nothing of them.
	Owners []metav1.OwnerReference
	// Spec is that of its template.
	Spec corev1.PersistentVolumeClaimSpec
}

// Claim makes the mirror of a volume claim what may be shown of it. Stored is the mirror as it is, nil for a new one. Its cluster has a say in
// what it is bound to, of which class and size it is where it may grow, and in its annotations and finalizers but for those that have a
// meaning above.
func (c Claim) Claim(claim, stored *corev1.PersistentVolumeClaim) {
	base := c.Spec
	if stored != nil {
		base = stored.Spec
		claim.Labels = maps.Clone(stored.Labels)
	} else {
		claim.Labels = Unreserved(c.Labels)
		claim.OwnerReferences = append(Told(claim.OwnerReferences), c.Owners...)
	}
	out := *base.DeepCopy()
	out.VolumeName = claim.Spec.VolumeName
	out.Resources = *claim.Spec.Resources.DeepCopy()
	if out.StorageClassName == nil {
		out.StorageClassName = clone(claim.Spec.StorageClassName)
	}
	if out.VolumeMode == nil {
		out.VolumeMode = clone(claim.Spec.VolumeMode)
	}
	if out.VolumeAttributesClassName == nil || stored != nil {
		out.VolumeAttributesClassName = clone(claim.Spec.VolumeAttributesClassName)
	}
	if out.DataSource != nil || out.DataSourceRef != nil { // either is derived of the other
		out.DataSource, out.DataSourceRef = claim.Spec.DataSource.DeepCopy(), claim.Spec.DataSourceRef.DeepCopy()
	}
	claim.Spec = out
	claim.Finalizers = slices.DeleteFunc(slices.Clone(claim.Finalizers), meansAbove)
	if len(claim.Finalizers) == 0 {
		claim.Finalizers = nil
	}
}

// meansAbove tells of a finalizer that controllers above act upon.
func meansAbove(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents ||
		Reserved(finalizer) && finalizer != v1alpha1.FinalizerProjection
}

// CheckClaim returns why a claim cannot be the mirror of one in a cluster, nil if it can.
func (c Claim) CheckClaim(claim, stored *corev1.PersistentVolumeClaim, cluster string) error {
	want := claim.DeepCopy()
	c.Claim(want, stored)
	switch {
	case !sameMaps(claim.Labels, want.Labels):
		return fmt.Errorf("metadata.labels: %s", differingKey(claim.Labels, want.Labels))
	case stored == nil && !equality.Semantic.DeepEqual(claim.OwnerReferences, want.OwnerReferences):
		return errors.New("metadata.ownerReferences: they are not those of the template of the claim")
	case len(claim.Finalizers) != len(want.Finalizers):
		return fmt.Errorf("metadata.finalizers: one of %.200q has a meaning above", strings.Join(claim.Finalizers, ","))
	case !equality.Semantic.DeepEqual(claim.Spec, want.Spec):
		return fmt.Errorf("spec: %s", differingField(&claim.Spec, &want.Spec))
	}
	return checkMarks(claim.Annotations, cluster)
}

// Told returns the owners of a claim that its cluster knows: pods and StatefulSets. All others are known above alone.
func Told(owners []metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), func(ref metav1.OwnerReference) bool { return !projection.OwnsClaims(ref) })
}

// Above returns the owners of a claim that are known above alone.
func Above(owners []metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), projection.OwnsClaims)
}

// ReplicaClaim is the claim by one of the templates of a StatefulSet.
func ReplicaClaim(template *corev1.PersistentVolumeClaim, selector *metav1.LabelSelector) Claim {
	labels := maps.Clone(template.Labels)
	if selector != nil && len(selector.MatchLabels) > 0 {
		maps.Copy(orMake(&labels), selector.MatchLabels)
	}
	return Claim{Labels: labels, Owners: Above(template.OwnerReferences), Spec: template.Spec}
}

// EphemeralClaim is the claim of the volume of a pod that comes and goes with it; false if a pod has no such volume for a claim of that name.
func EphemeralClaim(pod *corev1.Pod, claim string) (Claim, bool) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil && claim == pod.Name+"-"+volume.Name {
			template := volume.Ephemeral.VolumeClaimTemplate
			return Claim{Labels: template.Labels, Spec: template.Spec}, true
		}
	}
	return Claim{}, false
}
