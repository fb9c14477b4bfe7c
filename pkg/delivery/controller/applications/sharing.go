package applications

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/state"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// sharingOf is what is known of how requests are shared out over variants.
func sharingOf(spec v1alpha1.ApplicationSpec, contents []content, silent map[string]bool) state.Sharing {
	out := state.Sharing{
		Routed: spec.Traffic != nil, ByPods: spec.Traffic != nil && spec.Traffic.Method == v1alpha1.TrafficReplicas,
		Workloads: map[string][]state.Workload{}, Behind: map[string]bool{}, Silent: silent,
	}
	front := frontOf(spec, contents)
	for _, of := range contents {
		if !of.kind.Workload {
			continue
		}
		workload := workload(of)
		variant := cmp.Or(of.object.GetAnnotations()[v1alpha1.AnnotationVariant], v1alpha1.VariantPrimary)
		out.Workloads[variant] = append(out.Workloads[variant], workload)
		out.Behind[workload.Name] = front != nil && len(front.Spec.Selector) > 0 && labels.SelectorFromSet(front.Spec.Selector).Matches(podLabels(of.object))
	}
	return out
}

// frontOf is the Service in front of an application, nil if that is not known.
func frontOf(spec v1alpha1.ApplicationSpec, contents []content) *corev1.Service {
	var found *corev1.Service
	for _, of := range contents {
		service, is := of.object.(*corev1.Service)
		switch {
		case !is || isCopy(service) || service.Annotations[v1alpha1.AnnotationServiceOf] != "":
		case spec.Service != nil && spec.Service.Name == service.Name:
			return service
		case spec.Service != nil && spec.Service.Name != "":
		case found != nil:
			return nil // nobody says which
		default:
			found = service
		}
	}
	return found
}

// podLabels are those of the pods that a workload makes.
func podLabels(object projection.Object) labels.Set {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o.Spec.Template.Labels
	case *appsv1.StatefulSet:
		return o.Spec.Template.Labels
	case *appsv1.DaemonSet:
		return o.Spec.Template.Labels
	}
	return nil
}
