package summary

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
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

// withUse replaces the condition that tells whether any pod uses the claim by the one that is known above, which is about all pods.
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

// persistentVolumeClaimKind is broken down by cluster, so that pods can follow their volumes.
var persistentVolumeClaimKind = row[corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim]{
	resource:  corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	summarise: func(out *corev1.PersistentVolumeClaim, from Input) { out.Status = PersistentVolumeClaim(out, from) },
	count:     func(*corev1.PersistentVolumeClaim) ClusterStatus { return ClusterStatus{} },
	restore:   func(*corev1.PersistentVolumeClaim, ClusterStatus) {},
}
