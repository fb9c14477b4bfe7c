// Package handmade is about PersistentVolumes that somebody makes by hand in the logical cluster: which claim each is for.
package handmade

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// A PersistentVolume that somebody makes by hand in the logical cluster is for a claim there: it names the claim, or the claim names it, or it is
// one that the claim could have. It goes where the claim goes, to clusters whose admin lets such volumes in. Which one a claim gets is chosen
// once, and noted on the volume as the stock controller does.

// Shelf is the volumes that were made by hand in the logical cluster, and the clusters that there are.
type Shelf struct {
	// Volumes are all PersistentVolumes of the logical cluster, in any order.
	Volumes []*corev1.PersistentVolume
	// Clusters are those that have joined.
	Clusters []*v1alpha1.Cluster
}

// Open reports whether any cluster takes such volumes.
func (s Shelf) Open() bool {
	return slices.ContainsFunc(s.Clusters, func(c *v1alpha1.Cluster) bool { return c.Spec.Allows.Volumes })
}

// VolumeFor returns the volume that a claim is for, nil if there is none: one that is bound to it by either side, or the smallest of those
// that it could have, if no cluster makes volumes of its class. The problem says why a claim gets nothing of the volume that it names.
func (s Shelf) VolumeFor(claim *corev1.PersistentVolumeClaim) (volume *corev1.PersistentVolume, problem string) {
	for _, v := range s.Volumes {
		if storage.IsVolumeBoundToClaim(v, claim) && (volume == nil || preferred(v, volume, claim)) {
			volume = v
		}
	}
	if name := claim.Spec.VolumeName; name != "" {
		named := s.named(name)
		switch {
		case named == nil:
			return nil, "" // one of its cluster
		case named.Spec.ClaimRef != nil && !storage.IsVolumeBoundToClaim(named, claim):
			ref := named.Spec.ClaimRef
			return nil, fmt.Sprintf("it names PersistentVolume %s of the logical cluster, which is for the claim %s/%s: name another one, "+
				"or none, in a new claim", name, ref.Namespace, ref.Name) + recreated(ref, claim)
		case named.Spec.ClaimRef == nil && mismatch(named, claim) != "":
			return nil, fmt.Sprintf("it names PersistentVolume %s of the logical cluster, which it cannot have: %s", name, mismatch(named, claim))
		}
		return named, ""
	}
	if volume != nil || claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost || !s.ByHand(claim) {
		return volume, ""
	}
	return s.match(claim), ""
}

// Had returns the volume of these that a claim which is bound has got, nil if it has one of its cluster.
func (s Shelf) Had(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	i := slices.IndexFunc(s.Volumes, func(v *corev1.PersistentVolume) bool {
		return v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID != "" && storage.IsVolumeBoundToClaim(v, claim)
	})
	if i < 0 {
		return nil
	}
	return s.Volumes[i]
}

// mismatch says what of a volume that nobody has is not what a claim asks for, "" if all is: the stock controller binds no other, and to name one
// must not be enough to keep it from those who could have it.
func mismatch(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	size, want := v.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case size.Cmp(want) < 0:
		return fmt.Sprintf("it is too small, %s for %s", size.String(), want.String())
	case storage.GetPersistentVolumeClass(v) != placement.ClassOf(claim):
		return "its storageClassName is another one"
	case storage.CheckVolumeModeMismatches(&claim.Spec, &v.Spec):
		return "its volumeMode is another one"
	case !storage.CheckAccessModes(claim, v):
		return "it lacks an access mode"
	}
	return ""
}

// recreated says what to do if a volume is for an earlier claim of the same name.
func recreated(ref *corev1.ObjectReference, claim *corev1.PersistentVolumeClaim) string {
	if ref.Namespace != claim.Namespace || ref.Name != claim.Name {
		return ""
	}
	return "; that was an earlier one of this name, so if its data may be used again, take spec.claimRef off the volume"
}

// preferred reports whether a claim rather gets one volume that is for it than another: that which names its UID, which it may have already.
func preferred(v, than *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if knows, known := v.Spec.ClaimRef.UID != "", than.Spec.ClaimRef.UID != ""; knows != known {
		return knows
	}
	if is, was := v.Name == claim.Spec.VolumeName, than.Name == claim.Spec.VolumeName; is != was {
		return is
	}
	return v.Name < than.Name
}

func (s Shelf) named(name string) *corev1.PersistentVolume {
	if i := slices.IndexFunc(s.Volumes, func(v *corev1.PersistentVolume) bool { return v.Name == name }); i >= 0 {
		return s.Volumes[i]
	}
	return nil
}

// match chooses among the volumes that are for nobody, as the stock controller does. One that is new counts as available: that is about to
// be written.
func (s Shelf) match(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	var free []*corev1.PersistentVolume
	for _, v := range s.Volumes {
		if v.Spec.ClaimRef != nil || v.DeletionTimestamp != nil || !storage.CheckAccessModes(claim, v) {
			continue
		}
		if v.Status.Phase == corev1.VolumePending || v.Status.Phase == "" {
			fresh := *v
			fresh.Status.Phase = corev1.VolumeAvailable
			v = &fresh
		}
		free = append(free, v)
	}
	slices.SortFunc(free, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	found, err := storage.FindMatchingVolume(claim, free, nil, nil, false, true)
	if err != nil || found == nil {
		return nil // by a selector that is none
	}
	return s.named(found.Name)
}

// ByHand reports whether a claim waits for a volume that somebody makes: it wants one of no class, or no cluster makes volumes of its class.
func (s Shelf) ByHand(claim *corev1.PersistentVolumeClaim) bool {
	name := placement.ClassOf(claim)
	if name == "" && claim.Spec.StorageClassName != nil {
		return true
	}
	return !s.anyClass(func(c *v1alpha1.ClusterStorageClass) bool {
		return !c.ByHand && (c.Name == name || name == "" && c.Default)
	})
}

// WaitsForPod reports whether a claim gets such a volume only once a pod uses it.
func (s Shelf) WaitsForPod(claim *corev1.PersistentVolumeClaim) bool {
	name := placement.ClassOf(claim)
	return name != "" && s.anyClass(func(c *v1alpha1.ClusterStorageClass) bool { return c.Name == name && c.WaitForFirstConsumer })
}

func (s Shelf) anyClass(is func(*v1alpha1.ClusterStorageClass) bool) bool {
	for _, cluster := range s.Clusters {
		if cluster.Status.Classes == nil {
			continue // not known, and when it is, this is asked again
		}
		for i := range cluster.Status.Classes.StorageClasses {
			if is(&cluster.Status.Classes.StorageClasses[i]) {
				return true
			}
		}
	}
	return false
}

// LetVolumesIn is the command that has a cluster take volumes that were made by hand, with what it allows already.
func LetVolumesIn(cluster string, allows v1alpha1.ClusterAllows) string {
	allows.Volumes = true
	return JoinAgain(cluster, allows)
}

// LetPodWebhooksIn is the command that has a cluster ask about pods, with what it allows already.
func LetPodWebhooksIn(cluster string, allows v1alpha1.ClusterAllows) string {
	allows.PodWebhooks = true
	return JoinAgain(cluster, allows)
}

// LetPipelinesIn is the command that has pipelines show what is in a cluster, with what it allows already.
func LetPipelinesIn(cluster string, allows v1alpha1.ClusterAllows) string {
	allows.Pipelines = true
	return JoinAgain(cluster, allows)
}

// JoinAgain is the command that brings the rights in a cluster up to date, with what joining without it would take back.
func JoinAgain(cluster string, allows v1alpha1.ClusterAllows) string {
	command := fmt.Sprintf("manifold cluster join %s --cluster-kubeconfig FILE", cluster)
	if allows.Volumes {
		command += " --allow-volumes"
	}
	if allows.PodWebhooks {
		command += " --pod-webhooks"
	}
	if allows.Pipelines {
		command += " --allow-pipelines"
	}
	return command
}

// ClosedTo reports whether something is in clusters of which none takes such volumes.
func ClosedTo(in []string, joined []*v1alpha1.Cluster) bool {
	return len(in) > 0 && !slices.ContainsFunc(joined, func(c *v1alpha1.Cluster) bool { return c.Spec.Allows.Volumes && slices.Contains(in, c.Name) })
}

// MayBeFor reports whether a volume that was made by hand may matter to a claim: either names the other, or the claim has none and names the
// same class.
func MayBeFor(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name || claim.Spec.VolumeName == volume.Name {
		return true
	}
	return volume.Spec.ClaimRef == nil && claim.Status.Phase != corev1.ClaimBound && storage.GetPersistentVolumeClass(volume) == placement.ClassOf(claim)
}
