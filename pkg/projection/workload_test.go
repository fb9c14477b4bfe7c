package projection

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestWorkloadOfReadsWhatPlacementNeeds(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: named("shop", "web")}
	d.Labels = map[string]string{"app": "web"}
	d.Annotations = map[string]string{v1alpha1.AnnotationClusters: "west, east"}
	d.Spec.Replicas = ptr.To[int32](2)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	kind, _ := KindOf(d)
	got, err := kind.WorkloadOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if got.GVK.String() != "apps/v1, Kind=Deployment" || got.Namespace != "shop" || got.Name != "web" || got.Labels["app"] != "web" || got.Division != placement.Divisible {
		t.Errorf("workload %+v", got)
	}
	if got.Replicas != 2 || got.Requests[corev1.ResourceCPU] != 1000 || got.Requests[corev1.ResourcePods] != 1 {
		t.Errorf("%d replicas of %v, want 2 of a core and a pod", got.Replicas, got.Requests)
	}
	if got.Pin == nil || !slices.Equal(got.Pin.Names, []string{"east", "west"}) {
		t.Errorf("pin %v, want east and west", got.Pin)
	}
	d.Spec.Replicas = nil
	if got, _ := kind.WorkloadOf(d); got.Replicas != 1 {
		t.Errorf("%d replicas by default, want 1", got.Replicas)
	}
	d.Annotations[v1alpha1.AnnotationStatus] = `{"east":{"refused":{"pods":1,"since":"2026-05-01T12:00:00Z","says":"no"}}}`
	if got, _ := kind.WorkloadOf(d); got.Refused["east"].Pods != 1 || got.Refused["east"].Says != "no" {
		t.Errorf("refused is %v, want a pod in east", got.Refused)
	}
	d.Annotations[v1alpha1.AnnotationClusters] = "East"
	if _, err := kind.WorkloadOf(d); err == nil || !strings.Contains(err.Error(), v1alpha1.AnnotationClusters) {
		t.Errorf("error %v of a malformed pin, want the annotation's name in it", err)
	}
}
