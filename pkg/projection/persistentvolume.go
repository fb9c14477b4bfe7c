package projection

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PersistentVolumes are each cluster's own. One that was made by hand in the logical cluster goes along with the claim that it is for, to clusters
// whose admin lets it. It is in no namespace and follows nothing but its claim, and so is none of Kinds.

// volumeAnnotations are those by which Kubernetes is told something about a volume, of the many that it writes itself.
var volumeAnnotations = map[string]bool{
	corev1.BetaStorageClassAnnotation: true, corev1.MountOptionAnnotation: true, "pv.beta.kubernetes.io/gid": true,
}

// CarriedVolume returns what a cluster holds of a PersistentVolume that goes along with its claim: without what is known of its use elsewhere, and
// for the claim of that name, which the cluster binds. The policy says what becomes of the data when that claim is gone.
func CarriedVolume(in *corev1.PersistentVolume, policy corev1.PersistentVolumeReclaimPolicy, to Target) (*corev1.PersistentVolume, error) {
	out := &corev1.PersistentVolume{}
	out.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolume"))
	own(in, out, to)
	for key := range out.Annotations {
		domain, _, _ := strings.Cut(key, "/")
		if (domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")) && !volumeAnnotations[key] {
			delete(out.Annotations, key)
		}
	}
	in.Spec.DeepCopyInto(&out.Spec)
	if ref := in.Spec.ClaimRef; ref != nil {
		out.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: ref.Namespace, Name: ref.Name}
	}
	out.Spec.PersistentVolumeReclaimPolicy = policy
	if err := seal(out); err != nil {
		return nil, fmt.Errorf("project PersistentVolume %s to cluster %q: %w", in.Name, to.Cluster, err)
	}
	return out, nil
}

// CarriesVolume reports whether a volume of a cluster is as it should be.
func CarriesVolume(desired, live *corev1.PersistentVolume) bool {
	return Covers(desired, live) // its hash is among that
}
