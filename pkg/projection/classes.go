package projection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// Class is a kind of objects that describe what a cluster offers. Others name them, and they are never projected: every cluster has its
// own, made by those who run it.
type Class struct {
	// Kind is the kind's name.
	Kind string
	// Resource is what the API serves the kind as.
	Resource schema.GroupVersionResource
	// Without is what a cluster lacks that has no such class, in words for the user.
	Without string
}

var (
	ingressClass  = Class{"IngressClass", networkingv1.SchemeGroupVersion.WithResource("ingressclasses"), "nothing there acts on this"}
	priorityClass = Class{"PriorityClass", schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), "it makes no pod of this"}
	runtimeClass  = Class{"RuntimeClass", nodev1.SchemeGroupVersion.WithResource("runtimeclasses"), "it makes no pod of this"}
	storageClass  = Class{"StorageClass", storagev1.SchemeGroupVersion.WithResource("storageclasses"), "no volume is made there for this"}
)

// classes is the table of all classes. Nothing may change it.
var classes = []Class{ingressClass, priorityClass, runtimeClass, storageClass}

// Classes returns the classes whose existence in a cluster matters.
func Classes() []Class { return slices.Clone(classes) }

// Requirement is a class that an object names.
type Requirement struct {
	// Class and Name say which one.
	Class Class
	Name  string
	// ForPods tells that no pod can be made without it. Otherwise the object is taken, and nothing acts on it.
	ForPods bool
	// ByHand tells that a volume that was made by hand and is of that name, as claims and volumes find each other, does as well: then nobody needs
	// the class itself. Such volumes come along with claims, and not with the pods that have claims of their own made.
	ByHand bool
}

// Requires returns the classes that an object names, which its clusters should have.
func (k Kind) Requires(in Object) []Requirement {
	var out []Requirement
	if k.demand != nil {
		for pods := range k.demand(in).Pods() {
			out = append(out, requiredByPods(&pods.Template.Spec)...)
		}
	}
	return append(out, k.requires(in)...)
}

func requiredByPods(in *corev1.PodSpec) []Requirement {
	var out []Requirement
	if in.PriorityClassName != "" {
		out = append(out, Requirement{Class: priorityClass, Name: in.PriorityClassName, ForPods: true})
	}
	if name := ptr.Deref(in.RuntimeClassName, ""); name != "" {
		out = append(out, Requirement{Class: runtimeClass, Name: name, ForPods: true})
	}
	for _, volume := range in.Volumes {
		if volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil {
			out = append(out, requiredByClaim(&volume.Ephemeral.VolumeClaimTemplate.Spec, false)...)
		}
	}
	return out
}

// requiredByClaim is the class of which a claim wants its volume, and whether it may also get one that somebody has made by hand.
func requiredByClaim(in *corev1.PersistentVolumeClaimSpec, byHand bool) []Requirement {
	if name := ptr.Deref(in.StorageClassName, ""); name != "" {
		return []Requirement{{Class: storageClass, Name: name, ByHand: byHand}}
	}
	return nil
}
