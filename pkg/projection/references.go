package projection

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// Reference is an object that another one needs by name, in the same namespace.
type Reference struct {
	// Resource is the kind of the object needed, one of Kinds.
	Resource schema.GroupVersionResource
	// Namespace and Name are those of the object needed.
	Namespace, Name string
	// Optional tells that pods start without the object. If it exists upstream, it is to be brought all the same.
	Optional bool
}

// References returns what an object of the kind needs by name below: a workload the ConfigMaps, the Secrets and the ServiceAccount of
// its pod template, a ServiceAccount its imagePullSecrets. Sorted, each once; optional only where every use is. What is named may not
// exist, and may not be Projectable.
func (k Kind) References(in Object) []Reference {
	refs := references{namespace: in.GetNamespace()}
	if k.demand != nil {
		for pods := range k.demand(in).Pods() {
			refs.podSpec(&pods.Template.Spec)
		}
	}
	k.references(in, &refs)
	return refs.sorted()
}

// References returns what the object needs by name below, as its kind tells; an object of a kind that is not projected needs nothing.
func References(in Object) []Reference {
	kind, ok := KindOf(in)
	if !ok {
		return nil
	}
	return kind.References(in)
}

// Follows returns the objects that an object of the kind goes along with: it belongs into every cluster that one of them belongs into.
func (k Kind) Follows(in Object) []Reference {
	refs := references{namespace: in.GetNamespace()}
	k.follows(in, &refs)
	return refs.sorted()
}

// MayBeGeneral reports whether any object of the kind can be General.
func (k Kind) MayBeGeneral() bool { return k.general != nil }

// General reports whether the object belongs into every cluster that runs a workload of its namespace.
func (k Kind) General(in Object) bool { return k.general != nil && k.general(in) }

// references gathers the references of one object.
type references struct {
	namespace string
	found     []Reference
}

func (r *references) add(resource schema.GroupVersionResource, name string, optional bool) {
	if name != "" {
		r.found = append(r.found, Reference{Resource: resource, Namespace: r.namespace, Name: name, Optional: optional})
	}
}

func (r *references) secret(name string, optional *bool) {
	r.add(secret.resource, name, ptr.Deref(optional, false))
}

func (r *references) configMap(name string, optional *bool) {
	r.add(configMap.resource, name, ptr.Deref(optional, false))
}

// pullSecrets are optional: a kubelet that does not find one pulls without it.
func (r *references) pullSecrets(in []corev1.LocalObjectReference) {
	for _, ref := range in {
		r.secret(ref.Name, ptr.To(true))
	}
}

func (r *references) podSpec(in *corev1.PodSpec) {
	name := accountOf(in)
	// Without the default one upstream, pods run as the one that every cluster makes.
	r.add(serviceAccount.resource, name, name == defaultServiceAccount)
	r.pullSecrets(in.ImagePullSecrets)
	for i := range in.InitContainers {
		r.container(&in.InitContainers[i])
	}
	for i := range in.Containers {
		r.container(&in.Containers[i])
	}
	for i := range in.EphemeralContainers {
		r.container((*corev1.Container)(&in.EphemeralContainers[i].EphemeralContainerCommon))
	}
	for i := range in.Volumes {
		r.volume(&in.Volumes[i].VolumeSource)
	}
}

func (r *references) container(in *corev1.Container) {
	for _, from := range in.EnvFrom {
		if ref := from.SecretRef; ref != nil {
			r.secret(ref.Name, ref.Optional)
		}
		if ref := from.ConfigMapRef; ref != nil {
			r.configMap(ref.Name, ref.Optional)
		}
	}
	for _, env := range in.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			r.secret(ref.Name, ref.Optional)
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.configMap(ref.Name, ref.Optional)
		}
	}
}

// volumeSecret returns the Secret of the volume types whose reference cannot be optional. A volume has one source.
func volumeSecret(in *corev1.VolumeSource) *corev1.LocalObjectReference {
	switch {
	case in.CephFS != nil:
		return in.CephFS.SecretRef
	case in.Cinder != nil:
		return in.Cinder.SecretRef
	case in.CSI != nil:
		return in.CSI.NodePublishSecretRef
	case in.FlexVolume != nil:
		return in.FlexVolume.SecretRef
	case in.ISCSI != nil:
		return in.ISCSI.SecretRef
	case in.RBD != nil:
		return in.RBD.SecretRef
	case in.ScaleIO != nil:
		return in.ScaleIO.SecretRef
	case in.StorageOS != nil:
		return in.StorageOS.SecretRef
	}
	return nil
}

func (r *references) volume(in *corev1.VolumeSource) {
	if ref := volumeSecret(in); ref != nil {
		r.secret(ref.Name, nil)
	}
	if in.PersistentVolumeClaim != nil {
		r.add(persistentVolumeClaim.resource, in.PersistentVolumeClaim.ClaimName, false)
	}
	if in.AzureFile != nil {
		r.secret(in.AzureFile.SecretName, nil)
	}
	if in.Secret != nil {
		r.secret(in.Secret.SecretName, in.Secret.Optional)
	}
	if in.ConfigMap != nil {
		r.configMap(in.ConfigMap.Name, in.ConfigMap.Optional)
	}
	if in.Projected == nil {
		return
	}
	for _, source := range in.Projected.Sources {
		if source.Secret != nil {
			r.secret(source.Secret.Name, source.Secret.Optional)
		}
		if source.ConfigMap != nil {
			r.configMap(source.ConfigMap.Name, source.ConfigMap.Optional)
		}
	}
}

// sorted puts needed before optional uses of the same object, so that dropping repetitions keeps the stricter one.
func (r *references) sorted() []Reference {
	slices.SortFunc(r.found, func(a, b Reference) int {
		return cmp.Or(
			cmp.Compare(a.Resource.Resource, b.Resource.Resource),
			cmp.Compare(a.Name, b.Name),
			compareBool(a.Optional, b.Optional),
		)
	})
	return slices.CompactFunc(r.found, func(a, b Reference) bool { return a.Resource == b.Resource && a.Name == b.Name })
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
