package applications

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

func inRegion(region string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}
}

func TestWhatComesAndGoesWithTheNextRelease(t *testing.T) {
	eu := []v1alpha1.Target{{Name: "eu", ClusterSelector: inRegion("eu")}}
	clusters := map[string]delivery.Cluster{"us": {Labels: map[string]string{"region": "us"}}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		clusters[name] = delivery.Cluster{Labels: map[string]string{"region": "eu"}}
	}
	for name, test := range map[string]struct {
		targets []v1alpha1.Target
		runs    []string
		want    string
	}{
		"nothing where it runs in all":    {targets: eu, runs: []string{"a", "b", "c", "d", "e"}},
		"nothing where placement decides": {runs: []string{"us"}},
		"a cluster that has joined":       {targets: eu, runs: []string{"a", "b", "d", "e"}, want: `joining with the next release: cluster "c" of target eu`},
		"more of them than there is room for": {
			targets: eu, runs: []string{"a"},
			want: `joining with the next release: cluster "b" of target eu, "c" of target eu, "d" of target eu and 1 more`,
		},
		"a cluster that got other labels": {
			targets: eu, runs: []string{"a", "b", "c", "d", "e", "us"}, want: `leaving with the next release, as it is no target any more: cluster "us"`,
		},
		"a cluster that has gone": {
			targets: eu, runs: []string{"a", "b", "c", "d", "e", "gone"}, want: `leaving with the next release, as it is no target any more: cluster "gone"`,
		},
		"one of each": {
			targets: []v1alpha1.Target{{Name: "x", Cluster: "a"}}, runs: []string{"b"},
			want: `joining with the next release: cluster "a" of target x; leaving with the next release, as it is no target any more: cluster "b"`,
		},
		"a target that is nowhere": {
			targets: []v1alpha1.Target{{Name: "x", Cluster: "mars"}}, runs: []string{"a"}, want: `the next release cannot begin: target "x": there is no cluster "mars"`,
		},
	} {
		primary := v1alpha1.Variant{Name: v1alpha1.VariantPrimary}
		for _, cluster := range test.runs {
			primary.Clusters = append(primary.Clusters, v1alpha1.VariantCluster{Cluster: cluster, Target: "eu"})
		}
		if got := withNext(test.targets, clusters, []v1alpha1.Variant{primary}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTheStatusTellsOfClustersThatWaitForTheNextRelease(t *testing.T) {
	app := inline(configMap("red"))
	app.Spec.Targets = []v1alpha1.Target{{Name: "eu", ClusterSelector: inRegion("eu")}}
	w := newWorld(t, nil, app, &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"region": "eu"}}})
	w.turn()
	w.ends(v1alpha1.ReleaseSucceeded)
	released := meta.FindStatusCondition(w.turn().Status.Conditions, v1alpha1.ApplicationReleased)
	if released == nil || released.Status != metav1.ConditionTrue || !strings.HasPrefix(released.Message, `web-v1 runs in all targets; joining with the next release: cluster "east" of target eu`) {
		t.Errorf("the condition is %+v", released)
	}
}
