package summary

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// VolumeReport is what a cluster has of a PersistentVolume that went there along with its claim.
type VolumeReport struct {
	// Phase is what the cluster says of it, as far as it can be: see SaneVolume. "" tells that the cluster holds none.
	Phase corev1.PersistentVolumePhase
	// Message is what the cluster says of it that it could not reclaim.
	Message string
	// Problem says why the cluster does not hold the volume, in words for the user.
	Problem string
	// Doubts are what the cluster said that did not count.
	Doubts []string
}

// SaneVolume returns the report of a cluster about a volume: claim is the UID that the claim has there which the volume is for, "" if the cluster
// has none. It is not bound to another one, whatever the cluster says, and to none while that is there it is not released.
func SaneVolume(live *corev1.PersistentVolume, claim types.UID) (out VolumeReport) {
	doubt := func(format string, args ...any) {
		out.Doubts = append(out.Doubts, fmt.Sprintf(format, args...))
		out.Phase = corev1.VolumePending
	}
	out.Phase = live.Status.Phase
	ref := live.Spec.ClaimRef
	switch live.Status.Phase {
	case "":
		out.Phase = corev1.VolumePending
	case corev1.VolumePending, corev1.VolumeAvailable:
	case corev1.VolumeBound:
		switch {
		case ref == nil || ref.UID == "":
			doubt("it is bound to no claim")
		case claim == "" || ref.UID != claim:
			doubt("it is bound to another claim than the one that it is for")
		}
	case corev1.VolumeReleased, corev1.VolumeFailed:
		if claim != "" && ref != nil && ref.UID == claim {
			doubt("it is released although its claim is there")
		}
		if live.Status.Phase == corev1.VolumeFailed {
			out.Message = Text(live.Status.Message)
		}
	default:
		doubt("phase %.20q is none", live.Status.Phase)
	}
	return out
}

// VolumeHolders are the clusters that hold a PersistentVolume, as it is noted on the volume, and what each said of it last.
type VolumeHolders map[string]VolumeHolder

// VolumeHolder is one of them.
type VolumeHolder struct {
	Phase corev1.PersistentVolumePhase `json:"phase,omitempty"`
}

// Released reports whether the claim of the volume has left it there.
func (h VolumeHolder) Released() bool {
	return h.Phase == corev1.VolumeReleased || h.Phase == corev1.VolumeFailed
}

// HoldersOf returns the clusters that hold a volume. Users cannot write what is read here.
func HoldersOf(volume *corev1.PersistentVolume) VolumeHolders {
	out := VolumeHolders{}
	if err := json.Unmarshal([]byte(volume.Annotations[v1alpha1.AnnotationStatus]), &out); err != nil {
		return VolumeHolders{}
	}
	return out
}

// String writes the holders as they are noted, "" for none.
func (h VolumeHolders) String() string {
	if len(h) == 0 {
		return ""
	}
	data, err := json.Marshal(h) // by name
	if err != nil {
		return ""
	}
	return string(data)
}

// Reclaimed reports whether nothing is left to do for a volume whose claim is gone: every cluster that had it says that it is gone, and one of
// them had it as released, and so made away with it. Of one that cannot be asked any more nobody knows what became of the data.
func (h VolumeHolders) Reclaimed(gone func(cluster string) bool) bool {
	released := false
	for cluster, holder := range h {
		if !gone(cluster) {
			return false
		}
		released = released || holder.Released()
	}
	return released
}

// PersistentVolume returns the status of a volume of the logical cluster: available as long as it is for no claim that there is, bound once a
// cluster says so, and released when that claim is gone. present reports whether the claim is there whose UID the volume names. What a silent
// cluster said last stands.
func PersistentVolume(in *corev1.PersistentVolume, present bool, reports map[string]VolumeReport) corev1.PersistentVolumeStatus {
	out := corev1.PersistentVolumeStatus{LastPhaseTransitionTime: in.Status.LastPhaseTransitionTime}
	switch ref := in.Spec.ClaimRef; {
	case ref == nil || ref.UID == "":
		out.Phase = corev1.VolumeAvailable
	case !present:
		out.Phase = corev1.VolumeReleased
	case in.Status.Phase == corev1.VolumeBound:
		out.Phase = corev1.VolumeBound
	default:
		out.Phase = corev1.VolumeAvailable
	}
	for _, cluster := range slices.Sorted(maps.Keys(reports)) {
		report := reports[cluster]
		switch {
		case report.Problem != "":
			out.Reason, out.Message = "ProjectionFailed", fmt.Sprintf("cluster %q: %s", cluster, report.Problem)
		case out.Phase == corev1.VolumeAvailable && present && report.Phase == corev1.VolumeBound:
			out.Phase = corev1.VolumeBound
		case out.Phase == corev1.VolumeReleased && report.Phase == corev1.VolumeFailed:
			out.Phase, out.Reason, out.Message = corev1.VolumeFailed, "VolumeFailedDelete", fmt.Sprintf("cluster %q: %s", cluster, report.Message)
		}
	}
	return out
}
