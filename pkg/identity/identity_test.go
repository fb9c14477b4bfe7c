package identity

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestKeysReadAsTheObjectsThatTheyName(t *testing.T) {
	resource := appsv1.SchemeGroupVersion.WithResource("deployments")
	for want, key := range map[string]Key{
		"deployments shop/web": {Resource: resource, Namespace: "shop", Name: "web"},
		"deployments web":      {Resource: resource, Name: "web"},
	} {
		if got := key.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDecisionOf(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		want       int32
	}{
		"what is recorded counts":                 {`{"east":{"replicas":3}}`, 3},
		"one that cannot be read counts for none": {`{"east"`, 0},
		"none": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{v1alpha1.AnnotationPlacement: test.annotation}}}
			if got := DecisionOf(d)["east"].Replicas; got != test.want {
				t.Errorf("%d replicas, want %d", got, test.want)
			}
			kind, _ := projection.KindOf(d)
			if got := (Workload{Kind: kind, Object: d}).Key().Name; got != "web" {
				t.Errorf("the key names %q", got)
			}
		})
	}
}
