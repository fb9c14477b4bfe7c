package admission

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// kinds warns of workloads that nothing runs: their kinds are stored, but not projected by this version.
type kinds struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &kinds{}

// workloads are the kinds that end in pods.
var workloads = []schema.GroupVersionResource{
	appsv1.SchemeGroupVersion.WithResource("deployments"),
	appsv1.SchemeGroupVersion.WithResource("statefulsets"),
	appsv1.SchemeGroupVersion.WithResource("daemonsets"),
	appsv1.SchemeGroupVersion.WithResource("replicasets"),
	batchv1.SchemeGroupVersion.WithResource("jobs"),
	corev1.SchemeGroupVersion.WithResource("pods"),
	corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
}

// Validate lets everything pass. What a controller made for another object is the other's business.
func (*kinds) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	for _, resource := range workloads {
		if resource != a.GetResource() {
			continue
		}
		if _, projected := projection.ForResource(resource); projected {
			return nil
		}
		if object, ok := a.GetObject().(metav1.Object); ok && metav1.GetControllerOf(object) != nil {
			return nil
		}
		warning.AddWarning(ctx, "", fmt.Sprintf("this version of Manifold does not run objects of kind %s: it is stored, and nothing acts on it; "+
			"use a Deployment", a.GetKind().Kind))
	}
	return nil
}
