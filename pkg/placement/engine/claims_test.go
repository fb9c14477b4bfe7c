package engine

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Claims count against the limits of a cluster from the moment at which somebody decides for it, and as long as their replicas are there.
func TestClaimsOfStatefulSetsCountAgainstLimits(t *testing.T) {
	database := func(name string, decision placement.Decision) *appsv1.StatefulSet {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision.String()}}}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		return set
	}
	kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	asks := func(name string) placement.Workload {
		w, err := kind.WorkloadOf(database(name, nil))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	east := joined("east", 99)
	east.Spec.Limits = corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("5Gi")}
	e := newEngine(t, namespace(""), east, joined("west", 9), database("first", on("east", 1)))
	for _, test := range []struct{ name, want string }{{"second", "east"}, {"third", "west"}} {
		got, ready := e.Place(asks(test.name), nil)
		if want := on(test.want, 1); !ready || !got.Decision.Equal(want) {
			t.Errorf("%s is placed on %s, want %s: %s", test.name, got.Decision, want, got.Message())
		}
		e.Placed(asks(test.name), got.Decision)
	}
}
