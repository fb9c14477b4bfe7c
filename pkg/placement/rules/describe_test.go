package rules

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestTheDescriptionOfTheFirstPolicyCounts(t *testing.T) {
	policy := func(name string, priority int32, age time.Duration, kinds ...string) v1alpha1.ClusterPlacementPolicy {
		out := v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(9000, 0).Add(-age))}}
		out.Spec.Priority = priority
		for _, kind := range kinds {
			out.Spec.CustomWorkloads = append(out.Spec.CustomWorkloads, v1alpha1.CustomWorkload{Kind: kind, PodTemplatePaths: []string{".spec." + name}})
		}
		return out
	}
	const a, b = "A.example.com", "B.example.com"
	got := map[string][]string{}
	for kind, all := range Described(readAll(nil, []v1alpha1.ClusterPlacementPolicy{
		policy("young", 0, time.Minute, b, a), policy("old", 0, time.Hour, a), policy("nothing", 9, time.Hour), policy("high", 1, time.Second, a),
		policy("older", 0, time.Hour, b),
	})) {
		for _, of := range all {
			got[kind] = append(got[kind], of.Policy+of.PodTemplatePaths[0])
			if of.Policy == "young" && of.Index != map[string]int{b: 0, a: 1}[kind] {
				t.Errorf("%s is number %d of %s", kind, of.Index, of.Policy)
			}
		}
	}
	want := map[string][]string{a: {"high.spec.high", "old.spec.old", "young.spec.young"}, b: {"older.spec.older", "young.spec.young"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
