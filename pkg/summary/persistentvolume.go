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

// GivenVolume is what a cluster was given of a PersistentVolume, by what is known above.
type GivenVolume struct {
	// For names the claim that the volume is for. Current tells that it was for that one too when the cluster was given it.
	For     *corev1.ObjectReference
	Current bool
	// Claim is the UID that the claim has in the cluster, "" if the cluster is not seen to have it.
	Claim types.UID
}

// SaneVolume returns the report of a cluster about a volume that it was given.
//
// Volumes and claims of a cluster are seen by two watches, of which either may be ahead: a claim that goes, comes or is made anew is seen before its volume
// or after it. So what one of them alone shows counts for nothing yet, and is no doubt. What cannot be whichever is ahead is one.
func SaneVolume(live *corev1.PersistentVolume, given GivenVolume) VolumeReport {
	switch phase := live.Status.Phase; phase {
	case "":
		return VolumeReport{Phase: corev1.VolumePending}
	case corev1.VolumePending, corev1.VolumeAvailable:
		return VolumeReport{Phase: phase}
	case corev1.VolumeBound:
		return given.bound(live.Spec.ClaimRef)
	case corev1.VolumeReleased, corev1.VolumeFailed:
		return given.released(live)
	default:
		return doubtedVolume("phase %.20q is none", phase)
	}
}

// bound is what counts of it that a cluster says the volume is bound.
func (g GivenVolume) bound(to *corev1.ObjectReference) VolumeReport {
	switch {
	case to == nil || to.UID == "":
		return doubtedVolume("it is bound to no claim")
	case g.another(to) && g.Current:
		return doubtedVolume("it is bound to another claim than the one that it is for")
	case g.another(to) || to.UID != g.Claim:
		return VolumeReport{Phase: corev1.VolumePending}
	}
	return VolumeReport{Phase: corev1.VolumeBound}
}

// released is what counts of it that a cluster says the claim of the volume has released it.
func (g GivenVolume) released(live *corev1.PersistentVolume) VolumeReport {
	by := live.Spec.ClaimRef
	switch {
	case by != nil && g.another(by) && g.Current:
		return doubtedVolume("it is released by another claim than the one that it is for")
	case by != nil && g.Claim != "" && by.UID == g.Claim:
		return VolumeReport{Phase: corev1.VolumePending}
	}
	out := VolumeReport{Phase: live.Status.Phase}
	if out.Phase == corev1.VolumeFailed {
		out.Message = Text(live.Status.Message)
	}
	return out
}

// another reports whether a claim is by its name another one than the volume is for.
func (g GivenVolume) another(claim *corev1.ObjectReference) bool {
	return g.For != nil && (claim.Namespace != g.For.Namespace || claim.Name != g.For.Name)
}

// doubtedVolume is the report of a volume of which a cluster says what cannot be.
func doubtedVolume(format string, args ...any) VolumeReport {
	return VolumeReport{Phase: corev1.VolumePending, Doubts: []string{fmt.Sprintf(format, args...)}}
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
