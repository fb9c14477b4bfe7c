package placement

import (
	corev1 "k8s.io/api/core/v1"

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

		StorageClass: ClassOf(claim),
	}
}

// ClassOf is the StorageClass that a claim names, "" if it leaves that to its cluster or wants a volume of none.
func ClassOf(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Spec.StorageClassName; name != nil {
		return *name
	}
	return claim.Annotations[corev1.BetaStorageClassAnnotation]
}

// StorageClassOf returns the one of a cluster's classes that makes the volume of a claim, nil if none does.
func StorageClassOf(claim *corev1.PersistentVolumeClaim, classes *v1alpha1.ClusterClasses) *v1alpha1.ClusterStorageClass {
	name := ClassOf(claim)
	unnamed := name == "" && claim.Spec.StorageClassName == nil
	for i := range classes.StorageClasses {
		if class := &classes.StorageClasses[i]; class.Name == name || unnamed && class.Default {
			return class
		}
	}
	return nil
}
