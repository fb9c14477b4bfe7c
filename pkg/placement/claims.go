package placement

import (
	corev1 "k8s.io/api/core/v1"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// ClaimWorkload returns what a decision needs to know about a volume claim that nothing uses, which goes whole to one cluster.
func ClaimWorkload(claim *corev1.PersistentVolumeClaim) Workload {
	return Workload{
		GVK:       corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		Namespace: claim.Namespace,
		Name:      claim.Name,
		Labels:    claim.Labels,
		Replicas:  1,

		StorageClass: classOf(claim),
	}
}

// classOf is the StorageClass that a claim names, "" if it leaves that to its cluster or wants a volume of none.
func classOf(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Spec.StorageClassName; name != nil {
		return *name
	}
	return claim.Annotations[corev1.BetaStorageClassAnnotation]
}

// StorageClassOf returns the one of a cluster's classes that makes the volume of a claim, nil if none does.
func StorageClassOf(claim *corev1.PersistentVolumeClaim, classes *v1alpha1.ClusterClasses) *v1alpha1.ClusterStorageClass {
	name := classOf(claim)
	unnamed := name == "" && claim.Spec.StorageClassName == nil
	for i := range classes.StorageClasses {
		if class := &classes.StorageClasses[i]; class.Name == name || unnamed && class.Default {
			return class
		}
	}
	return nil
}

// VolumeMayBeFor reports whether a volume that was made by hand may matter to a claim: either names the other, or the claim has none and names the
// same class.
func VolumeMayBeFor(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name || claim.Spec.VolumeName == volume.Name {
		return true
	}
	return volume.Spec.ClaimRef == nil && claim.Status.Phase != corev1.ClaimBound && storage.GetPersistentVolumeClass(volume) == classOf(claim)
}
