package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeBuilder is a volume that is changed word by word.
type VolumeBuilder struct{ corev1.PersistentVolume }

// Disk is a volume that is for nobody yet.
func Disk(name, class, size string) *VolumeBuilder {
	b := &VolumeBuilder{}
	b.Name, b.Labels = name, map[string]string{"disk": name}
	b.Spec.StorageClassName = class
	b.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	b.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	b.Status.Phase = corev1.VolumeAvailable
	return b
}

func (b *VolumeBuilder) Of(namespace, claim string, uid types.UID) *VolumeBuilder {
	b.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim, UID: uid}
	return b
}

func (b *VolumeBuilder) Modes(modes ...corev1.PersistentVolumeAccessMode) *VolumeBuilder {
	b.Spec.AccessModes = modes
	return b
}

func (b *VolumeBuilder) Phase(phase corev1.PersistentVolumePhase) *VolumeBuilder {
	b.Status.Phase = phase
	return b
}

func (b *VolumeBuilder) Block() *VolumeBuilder {
	mode := corev1.PersistentVolumeBlock
	b.Spec.VolumeMode = &mode
	return b
}

// In has nodes of these zones alone reach the volume.
func (b *VolumeBuilder) In(key string, operator corev1.NodeSelectorOperator, values ...string) *VolumeBuilder {
	if b.Spec.NodeAffinity == nil {
		b.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
	}
	required := b.Spec.NodeAffinity.Required
	required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	})
	return b
}
