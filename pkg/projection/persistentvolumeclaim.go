package projection

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// persistentVolumeClaim goes where a pod uses it, and stays there: each cluster binds it to a volume of its own, which holds the user's
// data. Nothing replaces it but another claim of its name, made after the user had deleted it: the data is not for whoever comes next.
// Claims that controllers make below, of templates, are shown by mirrors.
var persistentVolumeClaim = row[corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim]{
	resource:   corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	kind:       "PersistentVolumeClaim",
	namespaced: true,
	right:      rightBeside,
	delivered:  Selectable,
	mirror: func(in *corev1.PersistentVolumeClaim) bool {
		_, mirrored := in.Annotations[v1alpha1.AnnotationCluster]
		return mirrored
	},
	fill: func(in, out *corev1.PersistentVolumeClaim, _ Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		if ShowsVolume(in) {
			out.Spec.VolumeName = "" // for the cluster to say
		}
	},
	// What was chosen for it when it was made stays.
	carry: func(in, out *corev1.PersistentVolumeClaim) {
		if out.Spec.StorageClassName == nil {
			out.Spec.StorageClassName = in.Spec.StorageClassName
		}
		if out.Spec.VolumeName == "" {
			out.Spec.VolumeName = in.Spec.VolumeName
		}
	},
	follows: func(in *corev1.PersistentVolumeClaim, r *references) {
		for _, set := range SetsOfClaim(in.Name) {
			r.add(statefulSet.resource, set, true)
		}
	},
	requires: func(in *corev1.PersistentVolumeClaim) []Requirement { return requiredByClaim(&in.Spec, true) },
	stays:    true,
}

// ShowsVolume reports whether the volume that a claim names is the one that a cluster has bound it to, as the breakdown says, and not one that
// its user asks for.
func ShowsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return NamesShownVolume(claim.Spec.VolumeName, claim.Annotations[v1alpha1.AnnotationStatus])
}

// NamesShownVolume does the same for a claim's volume and breakdown.
func NamesShownVolume(volume, breakdown string) bool {
	if volume == "" || breakdown == "" {
		return false
	}
	var clusters map[string]struct {
		Volume string `json:"volume"`
	}
	if err := json.Unmarshal([]byte(breakdown), &clusters); err != nil {
		return false
	}
	for _, cluster := range clusters {
		if cluster.Volume == volume {
			return true
		}
	}
	return false
}
