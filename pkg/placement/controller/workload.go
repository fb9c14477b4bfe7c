package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// WorkloadOf reads what placement needs from a Deployment. The error is that of a pin that does not parse.
func WorkloadOf(d *appsv1.Deployment) (placement.Workload, error) {
	w := placement.Workload{
		GVK:       appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Namespace: d.Namespace,
		Name:      d.Name,
		Labels:    d.Labels,
		Replicas:  ptr.Deref(d.Spec.Replicas, 1),
		Requests:  placement.RequestsOf(&d.Spec.Template),
		Divisible: true,
	}
	if text, ok := d.Annotations[v1alpha1.AnnotationClusters]; ok {
		pin, err := v1alpha1.ParsePin(text)
		if err != nil {
			return w, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationClusters, err)
		}
		w.Pin = &pin
	}
	return w, nil
}
