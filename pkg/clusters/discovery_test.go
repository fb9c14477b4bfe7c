package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestServedKinds(t *testing.T) {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod"}, {Name: "pods/log", Kind: "Pod"},
			{Name: "lies", Kind: "Lie\x1b[2J"}, {Name: "stories", Kind: strings.Repeat("Story", 100)}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", Kind: "Deployment"}, {Name: "deployments/scale", Kind: "Scale"},
		}},
	}
	failed := []schema.GroupVersion{{Group: "metrics.k8s.io", Version: "v1beta1"}}
	last := []string{"Gone.v1.apps", "NodeMetrics.v1beta1.metrics.k8s.io", "Other.v1beta1.x.metrics.k8s.io"}
	want := []string{"Deployment.v1.apps", "NodeMetrics.v1beta1.metrics.k8s.io", "Pod.v1"}
	if diff := cmp.Diff(want, servedKinds(lists, failed, last)); diff != "" {
		t.Error(diff)
	}
	if got := servedKinds(nil, nil, last); got == nil || len(got) != 0 {
		t.Errorf("a cluster that serves nothing gives %v, want an empty list, which is not the same as not known", got)
	}
}
