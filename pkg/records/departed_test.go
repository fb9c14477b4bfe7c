package records

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestADepartureKeepsWhatClaimsAreMadeBy(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "db", UID: "uid-of-db", ResourceVersion: "7",
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":2}}`, v1alpha1.AnnotationStatus: "{}", "user": "own"},
	}}
	set.Spec.Replicas = ptr.To[int32](2)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{
		Name: "data", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "uid-of-owner"}},
	}}}
	before := set.DeepCopy()
	revision, err := Departure(set)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(set, before) {
		t.Error("the StatefulSet has changed")
	}
	want := before.DeepCopy()
	want.ResourceVersion, want.Spec.Template = "", corev1.PodTemplateSpec{}
	delete(want.Annotations, "user")
	if got := Departed(revision); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("it keeps %+v, want %+v", got, want)
	}

	for name, change := range map[string]func(*appsv1.ControllerRevision){
		"one of a user's namespace":        func(r *appsv1.ControllerRevision) { r.Namespace = "shop" },
		"one without the label":            func(r *appsv1.ControllerRevision) { r.Labels = nil },
		"one of another UID":               func(r *appsv1.ControllerRevision) { r.Name += "x" },
		"one that holds something else":    func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{"spec":1}`) },
		"one that holds nothing":           func(r *appsv1.ControllerRevision) { r.Data.Raw = nil },
		"one whose StatefulSet has no UID": func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{}`) },
	} {
		other := revision.DeepCopy()
		change(other)
		if got := Departed(other); got != nil {
			t.Errorf("%s keeps %v", name, got)
		}
	}
}
