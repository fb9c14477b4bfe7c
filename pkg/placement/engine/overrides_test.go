package engine

import (
	"testing"
	"time"

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

func TestThePolicyThatWinsSaysHowLongToDrain(t *testing.T) {
	draining := func(name, seconds string, priority int32) *v1alpha1.ClusterPlacementPolicy {
		p := policy(name, func(s *v1alpha1.ClusterPlacementPolicySpec) { s.Priority = priority })
		if seconds != "" {
			p.Annotations = map[string]string{v1alpha1.AnnotationDrainSeconds: seconds}
		}
		return p
	}
	kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    time.Duration
		said    bool
	}{
		"without policies nobody says":                     {},
		"a policy may say nothing":                         {objects: []runtime.Object{draining("a", "", 1)}},
		"one says it":                                      {objects: []runtime.Object{draining("a", "90", 1)}, want: 90 * time.Second, said: true},
		"also that nothing is waited for":                  {objects: []runtime.Object{draining("a", "0", 1)}, said: true},
		"the one of the highest priority does":             {objects: []runtime.Object{draining("a", "90", 1), draining("b", "5", 2)}, want: 5 * time.Second, said: true},
		"one that wins and says nothing leaves it open":    {objects: []runtime.Object{draining("a", "90", 1), draining("b", "", 2)}},
		"what was stored before it was checked is nothing": {objects: []runtime.Object{draining("a", "soon", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, append(test.objects, joined("east", 9), namespace(""))...)
			if got, said := e.Drain(kind, placed("web", on("east", 1))); got != test.want || said != test.said {
				t.Errorf("%s (%t), want %s (%t)", got, said, test.want, test.said)
			}
		})
	}
}
