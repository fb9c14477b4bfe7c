package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// dropping is a release of v2 to all clusters but the last, which runs v1 as the others do.
func dropping(clusters int, stages ...delivery.Stage) (w *world, dropped string) {
	w = newWorld(clusters, stages...)
	w.release.Whole = true
	w.release.Targets = w.release.Targets[:clusters-1]
	return w, fmt.Sprintf("c%d", clusters-1)
}

// target is how far a stage is in a cluster.
func (w *world) target(t *testing.T, stage, cluster string) delivery.TargetStatus {
	t.Helper()
	for _, target := range w.stage(stage).Targets {
		if target.Cluster == cluster {
			return target
		}
	}
	t.Fatalf("stage %s is not about cluster %s: %s", stage, cluster, render(w.status))
	return delivery.TargetStatus{}
}

func TestAClusterThatIsNoTargetAnyMoreIsLeft(t *testing.T) {
	w, dropped := dropping(3, sync)
	w.clusters["c1"].broken["web-v2"] = true
	w.next()
	w.pass(20 * time.Second)
	if got := w.target(t, "sync", dropped); got.Phase != delivery.NotStarted || !got.Retired || w.primary()[dropped] != "web-v1" {
		t.Fatalf("before the others have what is new, it is %s and runs %s: %s", got.Phase, w.primary()[dropped], render(w.status))
	}
	w.clusters["c1"].broken = map[string]bool{}
	var silent, gone time.Time
	w.run(t, 5*time.Minute, func() {
		report, there := w.look(dropped).Variants[delivery.Primary]
		if there && report.Weight == 0 && silent.IsZero() {
			silent = w.now
		}
		if !there && gone.IsZero() {
			gone = w.now
		}
	})
	if _, there := w.look(dropped).Variants[delivery.Primary]; !there && gone.IsZero() {
		gone = w.now
	}
	if silent.IsZero() || gone.IsZero() || gone.Sub(silent) < 30*time.Second {
		t.Errorf("it got no requests from %s, and was gone at %s", silent, gone)
	}
	want := map[string]string{"c0": "web-v2", "c1": "web-v2"}
	if got := w.primary(); !maps.Equal(got, want) || w.status.Phase != delivery.Succeeded || w.status.Message != "released in all targets" {
		t.Errorf("%v: %s", got, render(w.status))
	}
	if got := w.target(t, "sync", dropped); got.Phase != delivery.Succeeded || got.Message != `cluster "c2" is no target any more` {
		t.Errorf("it is %s: %q", got.Phase, got.Message)
	}
}

// A release by which a target follows its clusters is about one target, and leaves those clusters alone that it is told to leave, be it that the target has no other.
func TestAReleaseThatIsNotWholeLeavesWhatItIsToLeave(t *testing.T) {
	w := newWorld(3, sync)
	w.release.Revision = v1
	w.release.Targets, w.release.Others = w.release.Targets[:1], []string{"c1"}
	w.release.Leaves = []string{"c2"}
	w.run(t, 5*time.Minute, nil)
	if want := map[string]string{"c0": "web-v1", "c1": "web-v1"}; w.status.Phase != delivery.Succeeded || !maps.Equal(w.primary(), want) {
		t.Errorf("%v: %s", w.primary(), render(w.status))
	}

	w = newWorld(2, sync)
	w.release.Revision, w.release.Others = v1, []string{"c0"}
	w.release.Targets = []delivery.Target{{Name: "c1", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}}
	w.release.Leaves = []string{"c1"}
	w.run(t, 5*time.Minute, nil)
	if want := map[string]string{"c0": "web-v1"}; w.status.Phase != delivery.Succeeded || !maps.Equal(w.primary(), want) {
		t.Errorf("%v: %s", w.primary(), render(w.status))
	}
}

func TestClustersAreLeftInTheLastStageThatBringsTheRevision(t *testing.T) {
	first := delivery.Stage{ID: "first", Name: delivery.StagePrimaryRollout, Targets: []string{"c0"}}
	second := delivery.Stage{ID: "second", Name: delivery.StagePrimaryRollout, Targets: []string{"c1"}}
	w, dropped := dropping(3, append(append(canary(20), first), second, delivery.Stage{ID: "clean", Name: delivery.StageCanaryClean})...)
	w.run(t, 10*time.Minute, nil)
	for _, of := range w.status.Stages {
		want := of.ID == "second"
		if got := slices.ContainsFunc(of.Targets, func(t delivery.TargetStatus) bool { return t.Cluster == dropped }); got != want {
			t.Errorf("stage %s is about it: %t", of.ID, got)
		}
	}
	if w.primary()[dropped] != "" || w.status.Phase != delivery.Succeeded {
		t.Errorf("%s", render(w.status))
	}
}

func TestWhoeverKeepsAClusterKeepsItAsItIs(t *testing.T) {
	fails := delivery.Stage{ID: "fails", Name: delivery.StageAnalysis} // there is nothing to measure
	for name, test := range map[string]struct {
		stages  []delivery.Stage
		prepare func(*world)
		phase   delivery.Phase
		message string
	}{
		"a release to some of the targets": {
			stages: []delivery.Stage{sync}, phase: delivery.Succeeded, prepare: func(w *world) { w.release.Whole = false },
		},
		"a release that brings the revision nowhere": {stages: canary(20), phase: delivery.Succeeded},
		"a stage that has failed before": {
			stages: []delivery.Stage{sync}, phase: delivery.Failed, prepare: func(w *world) { w.clusters["c0"].refused["web-v2"] = true },
		},
		"a rollback, also after it was left": {stages: []delivery.Stage{sync, fails}, phase: delivery.Failed},
		"somebody who skips it": {
			stages: []delivery.Stage{sync}, phase: delivery.Succeeded,
			prepare: func(w *world) { w.orders.SkipTargets = map[string]map[string]string{"sync": {"c1": "jane"}} },
			message: `released in all targets; cluster "c1" is no target any more, and is kept: skipped by jane`,
		},
		"a stage that somebody skips": {
			stages: []delivery.Stage{sync}, phase: delivery.Succeeded, prepare: func(w *world) { w.orders.Skip = map[string]string{"sync": "jane"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, dropped := dropping(2, test.stages...)
			if test.prepare != nil {
				test.prepare(w)
			}
			w.run(t, 10*time.Minute, nil)
			if w.status.Phase != test.phase || !strings.Contains(w.status.Message, test.message) || w.status.Set.Differs(*w.release.Stable, dropped) || w.primary()[dropped] != "web-v1" {
				t.Errorf("%s, it runs %q: %s", w.status.Phase, w.primary()[dropped], render(w.status))
			}
		})
	}
}

func TestAClusterThatCannotBeLeftNowHoldsNobodyUp(t *testing.T) {
	for name, test := range map[string]struct {
		silent, deaf bool
		took         time.Duration
		message      string
	}{
		"it does not answer": {silent: true, took: time.Minute, message: `cluster "c1" is no target any more, and is left as soon as that can be done: cluster "c1" does not answer`},
		"it does nothing":    {deaf: true, took: 11 * time.Minute, message: `is left as soon as that can be done: no progress within 10m0s: waiting for cluster "c1"`},
	} {
		t.Run(name, func(t *testing.T) {
			stage := sync
			stage.Failure.OnUnreachable = delivery.Wait
			w, dropped := dropping(2, stage)
			c := w.clusters[dropped]
			c.silent = test.silent
			kept := []told(nil)
			w.run(t, test.took, func() {
				if test.deaf {
					kept, c.told = append(kept, c.told...), nil
				}
			})
			if got := w.target(t, "sync", dropped); got.Phase != delivery.Skipped || !strings.Contains(got.Message, test.message) {
				t.Errorf("it is %s: %q", got.Phase, got.Message)
			}
			if w.status.Phase != delivery.Succeeded || !strings.HasPrefix(w.status.Message, "released in all targets; cluster ") || w.primary()[dropped] != "web-v1" {
				t.Errorf("%s", render(w.status))
			}
			c.silent, c.told = false, append(kept, c.told...)
			w.pass(5 * time.Second)
			if got := w.primary()[dropped]; got != "" {
				t.Errorf("once it can, it runs %s", got)
			}
		})
	}
}

func TestAClusterThatHasLeftNeedsNotBeLeft(t *testing.T) {
	w, dropped := dropping(2, sync)
	delete(w.clusters, dropped)
	w.run(t, time.Minute, nil)
	if got := w.target(t, "sync", dropped); got.Phase != delivery.Skipped || got.Message != `cluster "c1" has left` {
		t.Errorf("it is %s: %q", got.Phase, got.Message)
	}
	if w.status.Phase != delivery.Succeeded || w.status.Message != "released in all targets" || slices.Contains(w.status.Set.Clusters(), dropped) {
		t.Errorf("%s", render(w.status))
	}
}

func TestOnlyIfAllFailDoesNotAskClustersThatAreLeft(t *testing.T) {
	w, dropped := dropping(2, sync)
	w.release.Rollback.OnlyIfAllFail = true
	w.clusters["c0"].refused["web-v2"] = true
	w.run(t, time.Minute, nil)
	if w.status.RolledBack != delivery.Succeeded || w.primary()[dropped] != "web-v1" {
		t.Errorf("%s", render(w.status))
	}
}

// Copies of an earlier release go with the rest.
func TestCopiesLeaveAClusterToo(t *testing.T) {
	w, dropped := dropping(2, sync)
	left := w.release.Current.Clone()
	left[delivery.Primary].Clusters[dropped] = delivery.Part{Revision: v1, Traffic: 80, Routed: true}
	left[delivery.Canary] = delivery.Variant{Suffix: "canary", Clusters: map[string]delivery.Part{
		dropped: {Revision: v2, Replicas: map[string]int32{"Deployment/web": 1}, Traffic: 20, Routed: true},
	}}
	w.release.Current = left
	w.clusters[dropped].applied.set = left.Clone()
	w.carry()
	w.run(t, 5*time.Minute, nil)
	if _, has := w.status.Set[delivery.Canary]; has || w.status.Phase != delivery.Succeeded || len(w.look(dropped).Variants) > 0 {
		t.Errorf("%s", render(w.status))
	}
}

// Clusters do and say everything late, break and fall silent, and the controller starts anew at every step: the one that is left goes only after all
// others have what is new, and ends with nothing, or with what it had.
func TestRandomRunsLeaveAClusterLast(t *testing.T) {
	t.Parallel()
	ends := map[delivery.Phase]int{}
	for seed := range uint64(40) {
		w := randomWorld(seed)
		r := rand.New(rand.NewPCG(seed, 13))
		dropped := fmt.Sprintf("c%d", len(w.clusters)-1)
		w.release.Whole, w.release.Targets = true, w.release.Targets[:len(w.clusters)-1]
		roll := w.release.Stages[2].ID
		for _, c := range w.sorted() {
			c.broken[v2.Name], c.refused[v2.Name] = r.IntN(16) == 0, r.IntN(24) == 0
		}
		w.run(t, 4*time.Hour, func() {
			w.restart(t)
			if c := w.clusters[dropped]; r.IntN(100) == 0 {
				c.silent = !c.silent
			}
			if w.status.Phase != delivery.Running || !w.status.Set.Differs(*w.release.Stable, dropped) {
				return
			}
			for _, target := range w.stage(roll).Targets {
				if target.Cluster != dropped && !w.holds(target.Cluster) {
					t.Fatalf("seed %d: %s is left when %s does not run what is new: %s", seed, dropped, target.Cluster, render(w.status))
				}
			}
		})
		ends[w.status.Phase]++
		w.clusters[dropped].silent = false
		for range 60 {
			w.now = w.now.Add(time.Second)
			w.carry()
		}
		want := ""
		if w.status.RolledBack != "" {
			want = "web-v1"
		}
		if got := w.primary()[dropped]; got != want {
			t.Errorf("seed %d: %s runs %q, want %q: %s", seed, dropped, got, want, render(w.status))
		}
	}
	if ends[delivery.Succeeded] < 5 || ends[delivery.Failed] < 5 {
		t.Errorf("the runs show too little: %v", ends)
	}
}

// Percentages are of the targets, whatever else the stage is about.
func TestAClusterThatIsLeftLetsNoMoreBeginAtOnce(t *testing.T) {
	quarter := intstr.FromString("25%")
	w, dropped := dropping(5, delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: &quarter}, {MaxConcurrency: &quarter}}})
	most := 0
	w.run(t, 10*time.Minute, func() {
		running := 0
		for _, target := range w.stage("roll").Targets {
			if target.Phase == delivery.Running {
				running++
			}
		}
		most = max(most, running)
	})
	if most != 1 || w.primary()[dropped] != "" {
		t.Errorf("%d were under way at once: %s", most, render(w.status))
	}
}
