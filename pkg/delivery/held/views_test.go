package held

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestAClusterHoldsWhatWasWrittenThroughItsView(t *testing.T) {
	carried := identity.Contents{}
	name, err := carried.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"of":"west"}},"spec":{"minReadySeconds":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	above := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", Labels: map[string]string{"of": "east"}, Annotations: map[string]string{
		v1alpha1.AnnotationPlacement:    `{"east":{"replicas":1},"west":{"replicas":4}}`,
		v1alpha1.AnnotationViews:        v1alpha1.Views{{Cluster: "east", Replicas: ptr.To[int32](1)}, {Cluster: "west", Replicas: ptr.To[int32](4), Content: name}}.String(),
		v1alpha1.AnnotationViewContents: carried.String(),
	}}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](5), MinReadySeconds: 9}}
	kind, _ := projection.KindOf(above)
	completed := 0
	for title, v := range map[string]*Versions{"that reads revisions": versions(t, &completed), "that knows objects alone": nil} {
		for cluster, want := range map[string]struct {
			seconds  int32
			of, mark string
		}{"east": {9, "east", ""}, "west": {3, "west", "view:" + name + "@" + name}, "north": {9, "east", ""}} {
			got, err := v.In(kind, above, cluster)
			if err != nil {
				t.Fatalf("one %s: %v", title, err)
			}
			d := got.Object.(*appsv1.Deployment)
			if d.Spec.MinReadySeconds != want.seconds || d.Labels["of"] != want.of || got.Mark() != want.mark || d.UID != "uid" {
				t.Errorf("one %s: %s holds %d of %s, marked %q", title, cluster, d.Spec.MinReadySeconds, d.Labels["of"], got.Mark())
			}
		}
		if all, complete := v.All(kind, above); len(all) != 2 || !complete {
			t.Errorf("one %s: %d versions, complete: %t", title, len(all), complete)
		}
	}
	v := versions(t, &completed)
	gone := identity.Revision{Name: "view:gone", Target: "west"}
	if hash, err := v.HashAt(kind, above, gone); err != nil || hash != "gone" {
		t.Errorf("what was replaced has hash %q, %v", hash, err)
	}
	if _, err := v.At(kind, above, gone); !errors.Is(err, ErrUnreadable) || !errors.Is(err, identity.ErrNoContent) {
		t.Errorf("what was replaced is read: %v", err)
	}
}
