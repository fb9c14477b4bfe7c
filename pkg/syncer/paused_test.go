package syncer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
)

// A paused Deployment makes no pods of a template that it has no ReplicaSet of, and still runs wherever it is placed.
func TestAPausedDeploymentBeginsWithWhatRuns(t *testing.T) {
	image := func(image string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
		}
	}
	paused := func(d *appsv1.Deployment) { d.Spec.Paused = true }
	above := deployment("web", `{"west":{"replicas":2}}`, image("web:3"), paused)
	replicaSet := func(name, revision, image string, replicas int32) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{ObjectMeta: objectMeta(name), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(replicas)}}
		rs.OwnerReferences = controlledBy(above, "Deployment")
		rs.Annotations = map[string]string{planning.AnnotationRevision: revision}
		rs.Spec.Template.Labels = map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "abc"}
		rs.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
		return rs
	}
	begun := projected(above, 2, 0)
	begun.Annotations[planning.AnnotationRevision] = "1"
	others := replicaSet("others", "9", "others:1", 9)
	others.OwnerReferences[0].UID = "another"
	for name, test := range map[string]struct {
		above  *appsv1.Deployment
		sets   []projection.Object
		live   *appsv1.Deployment // nil for none
		image  string
		paused bool
	}{
		"it begins with the template that runs": {
			above: above, sets: []projection.Object{replicaSet("web-1", "9", "web:1", 0), replicaSet("web-2", "10", "web:2", 2)}, image: "web:2",
		},
		"with that of most pods": {
			above: above, sets: []projection.Object{replicaSet("web-1", "1", "web:1", 2), replicaSet("web-2", "2", "web:2", 1)}, image: "web:1",
		},
		"with the last if none runs now": {
			above: above, sets: []projection.Object{replicaSet("web-1", "9", "web:1", 0), replicaSet("web-2", "10", "web:2", 0)}, image: "web:2",
		},
		"it goes on until there is a ReplicaSet": {
			above: above, sets: []projection.Object{replicaSet("web-2", "2", "web:2", 2)}, live: projected(above, 2, 0), image: "web:2",
		},
		"it is paused when there is one": {
			above: above, sets: []projection.Object{replicaSet("web-2", "2", "web:2", 2)}, live: begun, image: "web:3", paused: true,
		},
		"one that has never run does not begin": {above: above, sets: []projection.Object{others}, image: "web:3", paused: true},
		"one that is not paused has its own template": {
			above: deployment("web", `{"west":{"replicas":2}}`, image("web:3")), sets: []projection.Object{replicaSet("web-2", "2", "web:2", 2)},
			image: "web:3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, append(test.sets, test.above, namespace("shop"))...), "west")
			var live projection.Object
			if test.live != nil {
				live = test.live
			}
			desired, waits, err := s.desired(deployments, test.above, live)
			if err != nil {
				t.Fatal(err)
			}
			got := desired.(*appsv1.Deployment)
			if got.Spec.Template.Spec.Containers[0].Image != test.image || got.Spec.Paused != test.paused {
				t.Errorf("has %s, paused %t; want %s, %t", got.Spec.Template.Spec.Containers[0].Image, got.Spec.Paused, test.image, test.paused)
			}
			if begins := test.image != "web:3"; waits.Held != begins {
				t.Errorf("is to be looked at again: %t, want %t", waits.Held, begins)
			}
			if want := projection.TemplateHash(&got.Spec.Template); got.Annotations[v1alpha1.AnnotationTemplate] != want {
				t.Errorf("is marked with template %s, want %s", got.Annotations[v1alpha1.AnnotationTemplate], want)
			}
			if hash := got.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
				t.Errorf("its pods are labelled with the hash %s of another ReplicaSet", hash)
			}
		})
	}
}
