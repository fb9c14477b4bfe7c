package summary

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// PersistentVolumeClaim returns the status of a claim: that of its cluster, as it is. Where several clusters have bound it, each to a
// volume of its own, it is Bound when it is in all of them, Lost when it is in any, and has the smallest of the capacities. What a
// silent cluster said last stands.
func PersistentVolumeClaim(in *corev1.PersistentVolumeClaim, from Input) corev1.PersistentVolumeClaimStatus {
	out := *in.Status.DeepCopy()
	first := true
	for _, cluster := range clustersOf(from.Reports) {
		claim := live[*corev1.PersistentVolumeClaim](from.Reports[cluster])
		if claim == nil || claim.Status.Phase == "" {
			continue
		}
		if first {
			first = false
			claim.Status.DeepCopyInto(&out)
			out.Conditions = withUse(out.Conditions, in.Status.Conditions)
			out.HealthStatus = in.Status.HealthStatus // what storage says of itself stays where it is
			continue
		}
		if rank(claim.Status.Phase) < rank(out.Phase) {
			out.Phase = claim.Status.Phase
		}
		for name, amount := range claim.Status.Capacity {
			if had, ok := out.Capacity[name]; ok && amount.Cmp(had) < 0 {
				out.Capacity[name] = amount
			}
		}
	}
	return out
}

// boundByController is the annotation of a claim whose volume was chosen for it. The name of a volume that the claim asked for is its user's.
const boundByController = "pv.kubernetes.io/bound-by-controller"

// volumeOf returns the volume that a cluster has chosen for a claim, or "".
func volumeOf(live *corev1.PersistentVolumeClaim) string {
	if live.Annotations[boundByController] == "" {
		return ""
	}
	return live.Spec.VolumeName
}

// shownVolume returns the volume that a claim shows as its own: that of the one cluster which holds it. Several clusters have several.
func shownVolume(reports map[string]Report) string {
	volume, holders := "", 0
	for _, cluster := range clustersOf(reports) {
		if claim := live[*corev1.PersistentVolumeClaim](reports[cluster]); claim != nil {
			volume, holders = volumeOf(claim), holders+1
		}
	}
	if holders != 1 {
		return ""
	}
	return volume
}

// withUse replaces the condition that reports whether any pod uses the claim by the one that is known above, which is about all pods.
func withUse(below, above []corev1.PersistentVolumeClaimCondition) []corev1.PersistentVolumeClaimCondition {
	use := func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimUnused
	}
	out := slices.DeleteFunc(below, use)
	if i := slices.IndexFunc(above, use); i >= 0 {
		out = append(out, above[i])
	}
	return out
}

// rank orders phases by how bad they are, the worst first.
func rank(phase corev1.PersistentVolumeClaimPhase) int {
	switch phase {
	case corev1.ClaimLost:
		return 0
	case corev1.ClaimPending:
		return 1
	}
	return 2
}

// persistentVolumeClaimKind is broken down by cluster, so that pods can follow their volumes. Its summary names the volume as well, which a
// cluster would do in the spec, and which kubectl looks for before it prints the capacity.
var persistentVolumeClaimKind = register(row[corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim]{
	resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	sane:     saneClaim,
	summarise: func(out *corev1.PersistentVolumeClaim, from Input) {
		out.Status = PersistentVolumeClaim(out, from)
		if out.Spec.VolumeName == "" || projection.ShowsVolume(out) {
			out.Spec.VolumeName = shownVolume(from.Reports)
		}
	},
	count: func(live *corev1.PersistentVolumeClaim) ClusterStatus { return ClusterStatus{Volume: volumeOf(live)} },
	restore: func(out *corev1.PersistentVolumeClaim, last ClusterStatus) {
		if last.Volume != "" {
			out.Spec.VolumeName, out.Annotations = last.Volume, map[string]string{boundByController: "yes"}
		}
	},
})
