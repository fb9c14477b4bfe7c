package releases

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// toEast asks for a release to the target east alone.
func toEast(release *v1alpha1.Release) { release.Spec.Targets = east }

func TestAPartialReleaseLeavesOutStagesOfOtherTargets(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		canary, first, second := stage(v1alpha1.StageCanaryRollout, "canary", ""), stage(v1alpha1.StagePrimaryRollout, "first", ""), stage(v1alpha1.StagePrimaryRollout, "second", "")
		canary.Targets, first.Targets = []string{"west"}, []string{"west"}
		second.Waves = []v1alpha1.Wave{{Targets: []string{"west"}}, {Targets: []string{"east"}}}
		w.first(pipeline(canary, first, second, stage(v1alpha1.StageCanaryClean, "clean", "")))
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", toEast)
		release := w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got, want := w.runs("web"), "east:10xtwo west:10xone"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		for _, of := range release.Status.Stages {
			skipped := of.Phase == v1alpha1.StageSkipped && of.Message == "skipped: the release is about none of its targets"
			if want := of.ID == "canary" || of.ID == "first"; skipped != want {
				t.Errorf("stage %s is %s: %s", of.ID, of.Phase, of.Message)
			}
		}
		w.settled()
	})
}

func TestAStageOfATargetThatThereIsNotIsRefusedInAPartialReleaseToo(t *testing.T) {
	w := newWorld(t, both...)
	wrong := stage(v1alpha1.StagePrimaryRollout, "first", "")
	wrong.Targets = []string{"mars"}
	w.first(pipeline(wrong))
	w.revise(2, both, deploymentOf("two"))
	w.asks("web-b", "web-v2", toEast)
	release := w.until("web-b", v1alpha1.ReleaseFailed)
	if want := `stages[0].targets: the application has no target "mars"`; release.Status.Message != want || w.runs("web") != "east:10xone west:10xone" {
		t.Errorf("%q, and it runs %s", release.Status.Message, w.runs("web"))
	}
}

func TestAReleaseToATargetThatThereIsNotFails(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(nil)
		w.revise(2, both, deploymentOf("two"))
		w.writes = nil
		w.asks("web-b", "web-v2", func(release *v1alpha1.Release) { release.Spec.Targets = []string{"east", "mars"} })
		release := w.until("web-b", v1alpha1.ReleaseFailed)
		if want := `spec.targets[1]: Application web has no target "mars"; it has east, west`; release.Status.Message != want {
			t.Errorf("it says %q, want %q", release.Status.Message, want)
		}
		w.settled()
		if got, want := w.runs("web"), "east:10xone west:10xone"; got != want || len(w.writes) > 0 {
			t.Errorf("runs %s, want %s; written: %v", got, want, w.writes)
		}
	})
}

// What one target has got is not what the application runs.
func TestWhatRanBeforeIsWhatAllTargetsHadGot(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(nil)
		for revision, image := range []string{2: "two", 3: "three"} {
			if image != "" {
				w.revise(int64(revision), both, deploymentOf(image))
			}
		}
		w.asks("web-b", "web-v2", toEast)
		if release := w.until("web-b", v1alpha1.ReleaseSucceeded); release.Status.BeforeRevision != "web-v1" {
			t.Errorf("before the partial release ran %q", release.Status.BeforeRevision)
		}
		w.asks("web-c", "web-v3", nil)
		w.until("web-c", v1alpha1.ReleaseSucceeded)
		w.request("web-c", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		release := w.until("web-c", v1alpha1.ReleaseRolledBack)
		if release.Status.BeforeRevision != "web-v1" {
			t.Errorf("before it ran %q, want what all targets had", release.Status.BeforeRevision)
		}
		if got, want := w.runs("web"), "east:10xtwo west:10xone"; got != want {
			t.Errorf("taken back, it runs %s, want %s", got, want)
		}
	})
}
