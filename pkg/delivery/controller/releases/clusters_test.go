package releases

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// follows has a release be one of automation by which targets follow their clusters.
func follows(targets ...string) func(*v1alpha1.Release) {
	return func(release *v1alpha1.Release) {
		release.Spec.Targets, release.Spec.Strategy, release.Spec.TriggeredBy.Cause = targets, v1alpha1.StrategyQuickSync, v1alpha1.CauseTargets
		release.Annotations = map[string]string{v1alpha1.AnnotationFollows: "x"}
	}
}

// Such a release is about one target. What others have lost, and what has gone on to another target, is left for the next release of the application.
func TestATargetFollowsItsClustersByAReleaseOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		change func(*v1alpha1.Release)
		want   string
	}{
		"one joins, and one leaves": {map[string]string{"a": "eu", "c": "eu"}, follows("eu"), "a:10xone c:10xone us:10xone"},
		"all leave":                 {nil, follows("eu"), "us:10xone"},
		"one goes on to another target": {
			map[string]string{"a": "eu", "b": "us"}, follows("eu"), "a:10xone b:10xone us:10xone",
		},
		"which takes it": {map[string]string{"a": "eu", "b": "us"}, follows("us"), "a:10xone b:10xone us:10xone"},
		"nobody leaves by what somebody has asked for": {
			map[string]string{"a": "eu"}, func(release *v1alpha1.Release) {
				follows("eu")(release)
				release.Spec.TriggeredBy.Cause = v1alpha1.CauseCommand
			}, "a:10xone b:10xone us:10xone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c", "us")
			clusters := w.ours.Manifold().V1alpha1().Clusters()
			label := func(labels map[string]string) {
				for _, name := range []string{"a", "b", "c", "us"} {
					cluster, err := clusters.Lister().Get(name)
					if err != nil {
						t.Fatal(err)
					}
					cluster = cluster.DeepCopy()
					cluster.Labels = map[string]string{"region": labels[name]}
					w.add(clusters.Informer(), cluster)
				}
			}
			of := func(region string) v1alpha1.Target {
				return v1alpha1.Target{Name: region, Follow: v1alpha1.FollowImmediately, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}}
			}
			label(map[string]string{"a": "eu", "b": "eu", "us": "us"})
			w.given(func(app *v1alpha1.Application) { app.Spec.Targets = []v1alpha1.Target{of("eu"), of("us")} })
			w.revise(1, []string{"eu", "us"}, deploymentOf("one"))
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			labels := map[string]string{"us": "us"}
			for cluster, region := range test.labels {
				labels[cluster] = region
			}
			label(labels)
			w.asks("web-b", "web-v1", test.change)
			release := w.until("web-b", v1alpha1.ReleaseSucceeded)
			if got := w.runs("web"); got != test.want {
				t.Errorf("runs %s, want %s: %+v", got, test.want, release.Status.Stages)
			}
			w.settled()
		})
	}
}

// What runs has the weights that it was released with, whatever the Application or a release that failed says.
func TestWeightsAreThoseOfWhatRuns(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		weighted := func(a, b int32) func(*v1alpha1.Application) {
			return func(app *v1alpha1.Application) {
				app.Spec.Targets = []v1alpha1.Target{{Name: "east", Cluster: "east", Weight: &a}, {Name: "west", Cluster: "west", Weight: &b}}
			}
		}
		weights := func() map[string]int32 {
			policy, err := w.ours.Manifold().V1alpha1().PlacementPolicies().Lister().PlacementPolicies("shop").Get("web-primary")
			if err != nil {
				t.Fatal(err)
			}
			return policy.Spec.Division.Weights
		}
		w.given(weighted(60, 40), both...)
		w.revise(1, both, deploymentOf("one"))
		w.asks("web-a", "web-v1", nil)
		w.until("web-a", v1alpha1.ReleaseSucceeded)
		w.settled()
		if got := weights(); got["east"] != 6000 || got["west"] != 4000 {
			t.Errorf("the weights are %v", got)
		}
		w.change(weighted(100, 0))
		w.settled()
		if got := weights(); got["east"] != 6000 || got["west"] != 4000 {
			t.Errorf("before anything is released with others, the weights are %v", got)
		}
		w.change(toEastAlone)
		w.revise(2, east, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.settled()
		if got := weights(); len(got) != 1 || got["east"] != 10000 {
			t.Errorf("the weights are %v", got)
		}
		if got := ptr.Deref(release.Status.Variants[0].Clusters[0].Weight, 0); got != 100 {
			t.Errorf("the status says %d", got)
		}
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		w.until("web-b", v1alpha1.ReleaseRolledBack)
		w.settled()
		if got := weights(); got["east"] != 6000 || got["west"] != 4000 {
			t.Errorf("taken back, the weights are %v", got)
		}
	})
}
