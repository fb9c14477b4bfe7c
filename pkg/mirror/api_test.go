package mirror

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// The pod of a template that was given the API of the logical cluster is shown as that of the template without.
func TestHowAPodCallsTheLogicalClusterIsNotShown(t *testing.T) {
	above := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	above.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pairs{"app": "web"}}, Spec: *templateSpec()}
	above.Spec.Template.Spec.ServiceAccountName, above.Spec.Template.Spec.AutomountServiceAccountToken = "operator", ptr.To(true)
	above.Spec.Template.Spec.Volumes = append(above.Spec.Template.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: rootCA}}},
		}},
	}})
	kind, _ := projection.KindOf(above)
	api := &projection.API{Host: "manifold.example", Port: "443", Authority: "PEM", Token: true}
	below, err := kind.Project(above, projection.Part{Share: placement.Share{Replicas: 1}, API: api}, projection.Target{LogicalCluster: "l", Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	template := below.(*appsv1.Deployment).Spec.Template
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name = "web-1"
	pod.Spec.NodeName = "east"
	if pod.Annotations[v1alpha1.AnnotationAPIAuthority] == "" {
		t.Fatal("the pod was not given the API")
	}
	pod.Annotations = Unreserved(pod.Annotations) // as the syncer reports it

	owner := Owner{Object: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}, Template: &above.Spec.Template}
	shown := pod.DeepCopy()
	owner.Pod(shown, nil)
	want := *above.Spec.Template.Spec.DeepCopy()
	want.NodeName, want.DeprecatedServiceAccount = "east", "operator"
	if diff := cmp.Diff(want, shown.Spec); diff != "" {
		t.Errorf("the mirror is not that of the template: %s", diff)
	}
	if err := owner.CheckPod(shown, nil, "east", nil); err != nil {
		t.Errorf("the mirror is refused: %v", err)
	}
	again := pod.DeepCopy()
	owner.Pod(again, shown)
	if diff := cmp.Diff(shown.Spec, again.Spec); diff != "" {
		t.Errorf("the next look at the pod shows something else: %s", diff)
	}
	if err := owner.CheckPod(again, shown, "east", nil); err != nil {
		t.Errorf("the next mirror is refused: %v", err)
	}
}
