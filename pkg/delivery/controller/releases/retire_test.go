package releases

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func toEastAlone(app *v1alpha1.Application) { app.Spec.Targets = app.Spec.Targets[:1] }

// stageTarget is how far a stage is in a cluster.
func stageTarget(t *testing.T, release *v1alpha1.Release, cluster string) v1alpha1.StageTargetStatus {
	t.Helper()
	for _, target := range release.Status.Stages[0].Targets {
		if target.Cluster == cluster {
			return target
		}
	}
	t.Fatalf("the stage is not about %s: %+v", cluster, release.Status.Stages[0])
	return v1alpha1.StageTargetStatus{}
}

func TestATargetThatIsTakenOutIsLeft(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(nil)
		w.change(toEastAlone)
		w.revise(2, east, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got, want := w.runs("web"), "east:10xtwo"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		target := stageTarget(t, release, "west")
		if target.Phase != v1alpha1.TargetSucceeded || target.Name != "west" || !target.Retired || target.Message != `cluster "west" is no target any more` {
			t.Errorf("it is told as %+v", target)
		}
		w.settled()
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		w.until("web-b", v1alpha1.ReleaseRolledBack)
		if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
			t.Errorf("taken back, it runs %s, want %s", got, want)
		}
		w.settled()
	})
}

func TestAClusterThatIsRelabelledIsLeft(t *testing.T) {
	w := newWorld(t, both...)
	clusters := w.ours.Manifold().V1alpha1().Clusters()
	label := func(name, region string) {
		cluster, err := clusters.Lister().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		cluster = cluster.DeepCopy()
		cluster.Labels = map[string]string{"region": region}
		w.add(clusters.Informer(), cluster)
	}
	label("east", "eu")
	label("west", "eu")
	w.given(func(app *v1alpha1.Application) {
		app.Spec.Targets = []v1alpha1.Target{{Name: "eu", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}}
	})
	w.revise(1, []string{"eu"}, deploymentOf("one"))
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	label("west", "us")
	w.settled() // it waits for the next release
	if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
		t.Fatalf("runs %s, want %s", got, want)
	}
	w.asks("web-b", "web-v1", nil)
	w.until("web-b", v1alpha1.ReleaseSucceeded)
	if got, want := w.runs("web"), "east:10xone"; got != want {
		t.Errorf("runs %s, want %s", got, want)
	}
}

func TestADeadClusterThatIsTakenOutIsLeftWhenItIsBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(nil)
		w.change(toEastAlone)
		w.silence("west", true)
		w.clock.Step(time.Hour)
		w.dead["west"] = true
		w.revise(2, east, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		if target := stageTarget(t, release, "west"); target.Phase != v1alpha1.TargetSkipped || !strings.Contains(target.Message, "is left as soon as that can be done") {
			t.Errorf("it is told as %+v", target)
		}
		for range lives { // the last one may have died before it wrote what follows
			w.step()
		}
		if got, want := w.runs("web"), "east:10xtwo"; got != want {
			t.Errorf("wanted is %s, want %s", got, want)
		}
	})
}

// What no revision has any more stays where the application runs, unless it prunes; where it does not run, nothing stays.
func TestNothingStaysRunningInAClusterThatIsLeft(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		other := func(name string) string {
			return strings.ReplaceAll(strings.Replace(deploymentOf("one"), `"name":"web"}`, `"name":"`+name+`"}`, 1), `"app":"web"`, `"app":"`+name+`"`)
		}
		w.given(nil, both...)
		w.reviseEach(1, nil, map[string][]string{"east": {deploymentOf("one"), other("old")}, "west": {deploymentOf("one"), other("old"), other("own")}})
		w.asks("web-a", "web-v1", nil)
		w.until("web-a", v1alpha1.ReleaseSucceeded)
		if got := w.runs("old") + "; " + w.runs("own"); got != "east:10xone west:10xone; west:10xone" {
			t.Fatalf("runs %s", got)
		}
		w.change(toEastAlone)
		w.revise(2, east, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got, want := w.runs("web")+"; "+w.runs("old")+"; "+w.runs("own"), "east:10xtwo; east:10xone; "; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		w.settled()
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		w.until("web-b", v1alpha1.ReleaseRolledBack)
		if got, want := w.runs("web")+"; "+w.runs("old")+"; "+w.runs("own"), "east:10xone west:10xone; east:10xone west:10xone; west:10xone"; got != want {
			t.Errorf("taken back, it runs %s, want %s", got, want)
		}
		w.settled()
	})
}

// Requests that still come to a cluster are served there until it is drained.
func TestAClusterThatIsLeftIsDrained(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.fronted(everywhere, `[{"name":"web","port":80}]`)
		w.begun(sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":20}`, `{"primary":100}`))
		w.waits("web-b", "agree")
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel})
		w.until("web-b", v1alpha1.ReleaseCancelled)
		w.change(func(app *v1alpha1.Application) { toEastAlone(app); app.Spec.Pipeline = nil })
		w.revise(3, east, webService, labelled("three"))
		w.asks("web-c", "web-v3", nil)
		var began time.Time
		for range 200 {
			w.step()
			release := w.release("web-c")
			for _, variant := range release.Status.Variants {
				for _, cluster := range variant.Clusters {
					if cluster.Cluster == "west" && variant.Name == v1alpha1.VariantPrimary && *cluster.Traffic == 0 && began.IsZero() {
						began = w.clock.Now()
					}
				}
			}
			if release.Status.Phase.Ended() {
				break
			}
			if got := w.held("west"); !strings.HasPrefix(got, "primary web:80 web-canary:20") && !began.IsZero() && strings.Contains(w.runs("web"), "west") {
				t.Fatalf("while it is drained it holds %s", got)
			}
		}
		release := w.release("web-c")
		if release.Status.Phase != v1alpha1.ReleaseSucceeded || began.IsZero() || w.clock.Now().Sub(began) < 30*time.Second {
			t.Errorf("%s: %s; west has got no requests since %s, and it is %s", release.Status.Phase, release.Status.Message, began, w.clock.Now())
		}
		if got, want := w.runs("web")+"; "+w.runs("web-canary"), "east:10xthree; "; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		w.step()
		if got := w.held("west"); got != "<nil>" {
			t.Errorf("west still holds %s", got)
		}
		w.settled()
	})
}
