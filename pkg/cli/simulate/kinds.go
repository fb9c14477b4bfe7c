package simulate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// object is an object of any kind.
type object interface {
	metav1.Object
	runtime.Object
}

// kind is one that decisions depend on.
type kind struct {
	schema.GroupVersionKind
	// resource is its plural, as kubectl takes it.
	resource string
	new      func() object
	// wide tells that objects have no namespace.
	wide bool
	// own tells that it is one of Manifold's.
	own bool
	// complete gives an object the defaults that the server gives it, and says what the server would refuse. It may be nil.
	complete func(object) field.ErrorList
}

// kinds are all that decisions depend on.
func kinds() []kind {
	out := []kind{
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), resource: "namespaces", new: func() object { return &corev1.Namespace{} }, wide: true},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), resource: "persistentvolumeclaims",
			new: func() object { return &corev1.PersistentVolumeClaim{} }},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PersistentVolume"), resource: "persistentvolumes",
			new: func() object { return &corev1.PersistentVolume{} }, wide: true},
		{GroupVersionKind: storagev1.SchemeGroupVersion.WithKind("StorageClass"), resource: "storageclasses.storage.k8s.io",
			new: func() object { return &storagev1.StorageClass{} }, wide: true},
		{GroupVersionKind: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), resource: "priorityclasses.scheduling.k8s.io",
			new: func() object { return &schedulingv1.PriorityClass{} }, wide: true},
		{GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("Cluster"), resource: "clusters.manifold.dev",
			new: func() object { return &v1alpha1.Cluster{} }, wide: true, own: true,
			complete: func(o object) field.ErrorList { return validation.ValidateCluster(o.(*v1alpha1.Cluster)) }},
		{GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("ClusterPlacementPolicy"), resource: "clusterplacementpolicies.manifold.dev",
			new: func() object { return &v1alpha1.ClusterPlacementPolicy{} }, wide: true, own: true,
			complete: func(o object) field.ErrorList {
				return projection.WorkloadKinds().ValidateClusterPlacementPolicy(o.(*v1alpha1.ClusterPlacementPolicy))
			}},
		{GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("PlacementPolicy"), resource: "placementpolicies.manifold.dev",
			new: func() object { return &v1alpha1.PlacementPolicy{} }, own: true,
			complete: func(o object) field.ErrorList {
				return projection.WorkloadKinds().ValidatePlacementPolicy(o.(*v1alpha1.PlacementPolicy))
			}},
	}
	for _, k := range projection.Workloads() {
		name := k.Resource.Resource
		if k.GVK.Group != "" {
			name += "." + k.GVK.Group
		}
		out = append(out, kind{GroupVersionKind: k.GVK, resource: name, new: func() object { return k.New() },
			complete: func(o object) field.ErrorList { return completeWorkload(k, o.(projection.Object)) }})
	}
	return out
}

// kindOf finds the kind of an object; found is false for one that no decision depends on. One in a version that is not served is found under
// the version that is.
func kindOf(gvk schema.GroupVersionKind) (k kind, found bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.GroupVersionKind == gvk })
	if i < 0 {
		older := gvk.Group == "extensions" || slices.Contains([]string{"apps", "batch"}, gvk.Group)
		i = slices.IndexFunc(all, func(k kind) bool { return k.Kind == gvk.Kind && (k.Group == gvk.Group || older && k.Group != "") })
	}
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

// completeWorkload gives containers what an API server gives them, a request where there is only a limit, and says what is wrong with what
// placement reads.
func completeWorkload(k projection.Kind, o projection.Object) (errs field.ErrorList) {
	demand := k.Demand(o)
	if demand.Replicas < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), demand.Replicas, "must be greater than or equal to 0"))
	}
	for key, check := range map[string]func(string) error{
		v1alpha1.AnnotationClusters:  func(text string) error { _, err := v1alpha1.ParsePin(text); return err },
		v1alpha1.AnnotationPlacement: func(text string) error { _, err := placement.ParseDecision(text); return err },
		v1alpha1.AnnotationStatus:    func(text string) error { _, err := summary.ParseBreakdown(text); return err },
	} {
		if text, has := o.GetAnnotations()[key]; has {
			if err := check(text); err != nil {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(key), text, err.Error()))
			}
		}
	}
	if demand.Template == nil {
		return errs
	}
	pods, path := &demand.Template.Spec, field.NewPath("spec", "template", "spec")
	if k.GVK.Kind == "Pod" {
		path = field.NewPath("spec")
	}
	errs = append(errs, completeContainers(pods.InitContainers, path.Child("initContainers"))...)
	return append(errs, completeContainers(pods.Containers, path.Child("containers"))...)
}

func completeContainers(containers []corev1.Container, path *field.Path) (errs field.ErrorList) {
	for i := range containers {
		r := &containers[i].Resources
		for name, limit := range r.Limits {
			if _, has := r.Requests[name]; !has {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = limit
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
			if request := r.Requests[name]; request.Sign() < 0 {
				errs = append(errs, field.Invalid(path.Index(i).Child("resources", "requests").Key(string(name)), request.String(),
					"must be greater than or equal to 0"))
			}
		}
	}
	return errs
}
