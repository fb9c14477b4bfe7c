package engine

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestOverridesAreThoseOfThePolicyThatWins(t *testing.T) {
	labelled := func(name, value string, priority int32) *v1alpha1.ClusterPlacementPolicy {
		return policy(name, func(s *v1alpha1.ClusterPlacementPolicySpec) {
			s.Priority = priority
			s.Overrides = []v1alpha1.Override{{
				Clusters: &v1alpha1.ClusterSelector{Names: []string{"east"}}, Labels: map[string]string{"rule": value},
			}}
		})
	}
	kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	for name, test := range map[string]struct {
		objects []runtime.Object
		cluster string
		want    string
	}{
		"without policies nothing is overridden":            {cluster: "east"},
		"a policy without overrides wins over one that has": {objects: []runtime.Object{labelled("a", "a", 1), policy("b", func(s *v1alpha1.ClusterPlacementPolicySpec) { s.Priority = 2 })}, cluster: "east"},
		"the policy of the highest priority overrides":      {objects: []runtime.Object{labelled("a", "a", 1), labelled("b", "b", 2)}, cluster: "east", want: "b"},
		"a cluster that no override selects is as it is":    {objects: []runtime.Object{labelled("a", "a", 1)}, cluster: "west"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, append(test.objects, joined("east", 9), joined("west", 4), namespace(""))...)
			got, err := e.Overrides(kind, placed("web", on("east", 1)), test.cluster)
			if err != nil {
				t.Fatal(err)
			}
			label := ""
			for _, item := range got.Items {
				label = item.Labels["rule"]
			}
			if label != test.want {
				t.Errorf("overridden by %q, want %q", label, test.want)
			}
		})
	}
}
