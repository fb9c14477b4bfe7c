package releases

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// That it was applied above proves nothing of the clusters that it goes to.
func TestAClusterIsDoneOnceItHasTheObjectsOfCustomKinds(t *testing.T) {
	for name, test := range map[string]struct {
		pin   string
		given func(w *world)
		// says is what the release waits for; mended has that come about.
		says   string
		mended func(w *world)
	}{
		"one that goes nowhere is done with":                   {given: func(*world) {}},
		"one that the clusters have is":                        {pin: "east,west", given: func(*world) {}},
		"one that a cluster has, and the other is not to have": {pin: "east", given: func(*world) {}},
		"not one that a cluster refuses": {
			pin: "east,west", given: func(w *world) { w.gizmos.problems["west"] = "no right to Gizmos" },
			says: "Gizmo/one: no right to Gizmos", mended: func(w *world) { delete(w.gizmos.problems, "west") },
		},
		"nor one that a cluster has as it was": {
			pin: "east,west", given: func(w *world) { w.dead["west"] = true },
			says: "Gizmo/one: the cluster has not taken it up yet", mended: func(w *world) { delete(w.dead, "west") },
		},
		"nor one that is not ready": {
			pin: "east,west", given: func(w *world) { w.gizmos.state = "False" }, says: "Gizmo/one: Ready=False", mended: func(w *world) { w.gizmos.state = "True" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.firstGizmo(nil, test.pin)
			test.given(w)
			w.revise(2, both, settings, gizmoOf(2, test.pin))
			w.asks("web-b", "web-v2", nil)
			if test.says != "" {
				for range 8 {
					w.step()
				}
				release := w.release("web-b")
				if release.Status.Phase != v1alpha1.ReleaseRunning || !strings.Contains(said(release), test.says) {
					t.Errorf("release is %s, and says %q; want that it waits: %q", release.Status.Phase, said(release), test.says)
				}
				test.mended(w)
			}
			w.until("web-b", v1alpha1.ReleaseSucceeded)
		})
	}
}

// said is what a release says of its clusters.
func said(release *v1alpha1.Release) string {
	var out []string
	for _, stage := range release.Status.Stages {
		for _, target := range stage.Targets {
			out = append(out, target.Message)
		}
	}
	return strings.Join(out, "; ")
}

func TestAnObjectOfACustomKindThatNothingIsDecidedAboutIsWaitedFor(t *testing.T) {
	w := newWorld(t, both...)
	w.gizmos.undecided = true
	w.given(nil, both...)
	w.revise(1, both, settings, gizmoOf(1, "east"))
	w.asks("web-a", "web-v1", nil)
	for range 8 {
		w.step()
	}
	if release := w.release("web-a"); release.Status.Phase != v1alpha1.ReleaseRunning || !strings.Contains(said(release), "Gizmo/one: nothing is decided yet about where it goes") {
		t.Errorf("release is %s, and says %q", release.Status.Phase, said(release))
	}
	w.gizmos.undecided = false
	w.until("web-a", v1alpha1.ReleaseSucceeded)
}

// While a wave proceeds, the clusters of the next ones hold what they held, although there is one object above.
func TestAWaveBringsObjectsOfCustomKindsToItsClustersAlone(t *testing.T) {
	w := newWorld(t, both...)
	w.firstGizmo(func(app *v1alpha1.Application) {
		rollout := stage(v1alpha1.StagePrimaryRollout, "rollout", "")
		rollout.Waves = []v1alpha1.Wave{{MaxConcurrency: ptr.To(intstr.FromInt32(1))}, {}}
		pipeline(rollout)(app)
	}, "east,west")
	if got := w.gizmos.sizes; got["east"] != 1 || got["west"] != 1 {
		t.Fatalf("sizes are %v", got)
	}
	w.gizmos.problems["east"] = "no right"
	w.revise(2, both, settings, gizmoOf(2, "east,west"))
	w.asks("web-b", "web-v2", func(r *v1alpha1.Release) { r.Spec.Strategy = v1alpha1.StrategyPipeline })
	for range 8 {
		w.step()
	}
	size, _, _ := unstructured.NestedInt64(w.gizmos.whole["one"].Object, "spec", "size")
	if got := w.gizmos.sizes["west"]; got != 1 || size != 2 {
		t.Errorf("west, whose wave has not begun, has size %d, and above it is %d", got, size)
	}
	delete(w.gizmos.problems, "east")
	w.until("web-b", v1alpha1.ReleaseSucceeded)
	if got := w.gizmos.sizes; got["east"] != 2 || got["west"] != 2 {
		t.Errorf("in the end sizes are %v", got)
	}
}

// Targets have manifests of their own.
func TestEachTargetHasItsOwnObjectsOfCustomKinds(t *testing.T) {
	w := newWorld(t, both...)
	w.given(nil, both...)
	w.reviseEach(1, nil, map[string][]string{"east": {gizmoOf(1, "east,west")}, "west": {gizmoOf(5, "east,west")}})
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	if got := w.gizmos.sizes; got["east"] != 1 || got["west"] != 5 {
		t.Errorf("sizes are %v", got)
	}
}
