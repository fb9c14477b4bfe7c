package identity

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// Resources that matter by themselves.
var (
	Accounts       = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	Claims         = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	ConfigMaps     = corev1.SchemeGroupVersion.WithResource("configmaps")
	Deployments    = appsv1.SchemeGroupVersion.WithResource("deployments")
	Endpoints      = corev1.SchemeGroupVersion.WithResource("endpoints")
	EndpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	Ingresses      = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	Namespaces     = corev1.SchemeGroupVersion.WithResource("namespaces")
	Pods           = corev1.SchemeGroupVersion.WithResource("pods")
	Priorities     = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")
	ReplicaSets    = appsv1.SchemeGroupVersion.WithResource("replicasets")
	Secrets        = corev1.SchemeGroupVersion.WithResource("secrets")
	Services       = corev1.SchemeGroupVersion.WithResource("services")
	StatefulSets   = appsv1.SchemeGroupVersion.WithResource("statefulsets")
	Volumes        = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
)

// Key names an object of a projected kind.
type Key struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// KeyOf returns the key of an object.
func KeyOf(kind projection.Kind, obj projection.Object) Key {
	return Key{Resource: kind.Resource, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// KeyOfReference returns the key of the object that a reference names.
func KeyOfReference(ref projection.Reference) Key {
	return Key{Resource: ref.Resource, Namespace: ref.Namespace, Name: ref.Name}
}

// String writes the key for logs.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Resource.Resource + " " + k.Name
	}
	return k.Resource.Resource + " " + k.Namespace + "/" + k.Name
}

// KindNamed finds the projected kind that an object reference names. Whoever wrote it may know the kind by another version.
func KindNamed(ref corev1.ObjectReference) (projection.Kind, bool) {
	about := ref.GroupVersionKind().GroupKind()
	for _, kind := range projection.Kinds() {
		if kind.GVK.GroupKind() == about {
			return kind, true
		}
	}
	return projection.Kind{}, false
}
