package storage

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/apis/apps"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// deploymentWorkload reads what placement needs from a Deployment in the internal version that strategies see.
func deploymentWorkload(obj runtime.Object) (placement.Workload, error) {
	d, ok := obj.(*apps.Deployment)
	if !ok {
		return placement.Workload{}, fmt.Errorf("a %T is no Deployment", obj)
	}
	return workloadOf(appsv1.SchemeGroupVersion.WithKind("Deployment"), d, d.Spec.Replicas, &d.Spec.Template, true)
}

func workloadOf(gvk schema.GroupVersionKind, meta metav1.Object, replicas int32, template *api.PodTemplateSpec, divisible bool) (placement.Workload, error) {
	var versioned corev1.PodTemplateSpec
	if err := corev1conversion.Convert_core_PodTemplateSpec_To_v1_PodTemplateSpec(template, &versioned, nil); err != nil {
		return placement.Workload{}, fmt.Errorf("pod template: %w", err)
	}
	w := placement.Workload{
		GVK:       gvk,
		Namespace: meta.GetNamespace(),
		Name:      meta.GetName(),
		Labels:    meta.GetLabels(),
		Replicas:  replicas,
		Requests:  placement.RequestsOf(&versioned),
		Divisible: divisible,
	}
	if text, ok := meta.GetAnnotations()[v1alpha1.AnnotationClusters]; ok {
		pin, err := v1alpha1.ParsePin(text)
		if err != nil {
			return placement.Workload{}, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationClusters, err)
		}
		w.Pin = &pin
	}
	return w, nil
}
