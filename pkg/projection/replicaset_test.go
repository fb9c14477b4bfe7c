package projection

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestWhichReplicaSetsAreMirrors(t *testing.T) {
	owner := func(apiVersion, kind string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web", Controller: ptr.To(controller)}}
	}
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   bool
	}{
		"a Deployment's":                      {owner("apps/v1", "Deployment", true), true},
		"not a bare one":                      {nil, false},
		"not a custom controller's":           {owner("argoproj.io/v1alpha1", "Rollout", true), false},
		"not that of a custom Deployment":     {owner("example.com/v1", "Deployment", true), false},
		"not one that a Deployment just owns": {owner("apps/v1", "Deployment", false), false},
	} {
		t.Run(name, func(t *testing.T) {
			in := &appsv1.ReplicaSet{ObjectMeta: named("shop", "web")}
			in.OwnerReferences = test.owners
			kind, _ := KindOf(in)
			if got := kind.Mirror(in); got != test.want {
				t.Errorf("mirror = %t, want %t", got, test.want)
			}
		})
	}
}

func TestReplicasAreProjectedAsAShare(t *testing.T) {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	set := &appsv1.ReplicaSet{ObjectMeta: named("shop", "web")}
	set.Spec = appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](5), MinReadySeconds: 7, Template: template}
	out := project(t, mustKindOf(t, set), set, placement.Share{Replicas: 2}).(*appsv1.ReplicaSet)
	if *out.Spec.Replicas != 2 || out.Spec.MinReadySeconds != 7 || out.Spec.Template.Labels["app"] != "web" {
		t.Errorf("projected %+v, want 2 of the replicas and the rest as it is", out.Spec)
	}
	if out.Annotations[v1alpha1.AnnotationTemplate] != TemplateHash(&set.Spec.Template) {
		t.Error("the template above is not told, by which a Deployment that takes it over is recognised")
	}

	controller := &corev1.ReplicationController{ObjectMeta: named("shop", "web")}
	controller.Spec = corev1.ReplicationControllerSpec{Replicas: ptr.To[int32](5), Selector: map[string]string{"app": "web"}, Template: &template}
	below := project(t, mustKindOf(t, controller), controller, placement.Share{Replicas: 3}).(*corev1.ReplicationController)
	if *below.Spec.Replicas != 3 || below.Spec.Selector["app"] != "web" || below.Spec.Template.Labels["app"] != "web" {
		t.Errorf("projected %+v, want 3 of the replicas and the rest as it is", below.Spec)
	}

	for _, in := range []Object{set, controller} {
		if demand := mustKindOf(t, in).Demand(in); demand.Replicas != 5 || demand.Division != placement.Divisible {
			t.Errorf("%T demands %+v, want 5 that may be divided", in, demand)
		}
	}
	set.Spec.Replicas, controller.Spec.Replicas = nil, nil
	for _, in := range []Object{set, controller} {
		if demand := mustKindOf(t, in).Demand(in); demand.Replicas != 1 {
			t.Errorf("%T demands %d replicas by default, want 1", in, demand.Replicas)
		}
	}
}

func mustKindOf(t *testing.T, in Object) Kind {
	t.Helper()
	kind, ok := KindOf(in)
	if !ok {
		t.Fatalf("no kind for %T", in)
	}
	return kind
}
