package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

func TestWhatHasFailedCanStillBeRolledBack(t *testing.T) {
	w := newWorld(2, sync, delivery.Stage{ID: "fails", Name: delivery.StageAnalysis})
	w.release.Rollback.Disabled = true
	w.run(t, time.Minute, nil)
	if w.status.Phase != delivery.Failed || w.primary()["c0"] != "web-v2" {
		t.Fatalf("%s", render(w.status))
	}
	w.orders.Rollback = "jane"
	w.next()
	w.run(t, time.Minute, nil)
	if w.status.Phase != delivery.Failed || w.status.RolledBack != delivery.Succeeded || w.primary()["c0"] != "web-v1" {
		t.Errorf("%s", render(w.status))
	}
	if edits := w.status.Edits["c0"]; w.next().Status.Edits["c0"] != edits || w.status.Phase != delivery.Failed {
		t.Error("the same order rolls back twice")
	}
}

// Rule 5.
func TestRollback(t *testing.T) {
	fails := delivery.Stage{ID: "fails", Name: delivery.StageAnalysis} // there is nothing to measure
	one := intstr.FromInt32(1)
	for name, test := range map[string]struct {
		prepare func(*world)
		stages  []delivery.Stage
		policy  delivery.RollbackPolicy
		phase   delivery.Phase
		rolled  delivery.Phase
		want    map[string]string // what really runs in the end, once all are back
		message string
	}{
		"a failure of the last stage rolls back too": {
			stages: []delivery.Stage{sync, fails}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"}, message: "put back what was there before",
		},
		"it succeeds if it does in one cluster": {
			stages: []delivery.Stage{sync, fails}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) { w.clusters["c1"].refused["web-v1"] = true }, message: "in 1 of 2 clusters",
		},
		"or has to in all, if that is wanted": {
			stages: []delivery.Stage{sync, fails}, policy: delivery.RollbackPolicy{NeedsAll: true}, phase: delivery.Failed, rolled: delivery.Failed, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) { w.clusters["c1"].refused["web-v1"] = true }, message: `cluster "c1" refuses`,
		},
		"it fails if it does in none": {
			stages: []delivery.Stage{sync, fails}, phase: delivery.Failed, rolled: delivery.Failed, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) { w.clusters["c0"].refused["web-v1"], w.clusters["c1"].refused["web-v1"] = true, true }, message: "in 0 of 2 clusters",
		},
		"a target that only the failed revision added is cleaned": {
			stages: []delivery.Stage{sync, fails}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1"},
			prepare: func(w *world) {
				for _, set := range []*delivery.Set{&w.release.Current, w.release.Stable, &w.clusters["c1"].applied.set} {
					delete((*set)[delivery.Primary].Clusters, "c1")
				}
			},
		},
		"a first release has no earlier revision": {
			stages: []delivery.Stage{sync, fails}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{}, message: "no earlier revision",
			prepare: func(w *world) {
				w.release.Current, w.release.Stable = delivery.Set{}, nil
				for _, c := range w.clusters {
					c.applied.set = delivery.Set{}
				}
			},
		},
		"what is half released goes back to the last success, not to what was half released before": {
			stages: []delivery.Stage{sync, fails}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) {
				half := w.release.Current.Clone()
				half[delivery.Primary].Clusters["c0"] = delivery.Part{Revision: delivery.Revision{Name: "web-v9", Hash: "z"}, Traffic: 100}
				w.release.Current = half
			},
		},
		"a cluster that is away follows when it is back": {
			stages: []delivery.Stage{sync, fails}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"}, message: "in 1 of 2 clusters",
			prepare: func(w *world) {
				w.clusters["c1"].silent = true
				w.release.Stages[0].Failure.OnUnreachable = delivery.Skip
			},
		},
		"nobody wants it": {
			stages: []delivery.Stage{sync, fails}, policy: delivery.RollbackPolicy{Disabled: true}, phase: delivery.Failed, want: map[string]string{"c0": "web-v2", "c1": "web-v2"}, message: "stage fails",
		},
		"only if all have failed, and one has not": {
			stages: []delivery.Stage{sync}, policy: delivery.RollbackPolicy{OnlyIfAllFail: true}, phase: delivery.Failed, want: map[string]string{"c0": "web-v2", "c1": "web-v2"},
			prepare: func(w *world) { w.clusters["c1"].refused["web-v2"] = true },
		},
		"only if all have failed, and all have": {
			stages: []delivery.Stage{sync}, policy: delivery.RollbackPolicy{OnlyIfAllFail: true}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) { w.clusters["c0"].refused["web-v2"], w.clusters["c1"].refused["web-v2"] = true, true },
		},
		"only if all have failed, and one has never begun": {
			stages: []delivery.Stage{{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: &one}}}}, policy: delivery.RollbackPolicy{OnlyIfAllFail: true},
			phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) { w.clusters["c0"].refused["web-v2"], w.clusters["c1"].refused["web-v2"] = true, true },
		},
		"only if all have failed, and the first of two waves has not": {
			stages: []delivery.Stage{{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: &one}}}}, policy: delivery.RollbackPolicy{OnlyIfAllFail: true},
			phase: delivery.Failed, want: map[string]string{"c0": "web-v2", "c1": "web-v2"},
			prepare: func(w *world) { w.clusters["c1"].refused["web-v2"] = true },
		},
		"only if all have failed, and a canary has its one pod in one of them": {
			stages: []delivery.Stage{{ID: "canary", Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: one}}}, policy: delivery.RollbackPolicy{OnlyIfAllFail: true},
			phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) { w.clusters["c0"].refused["web-v2"], w.clusters["c1"].refused["web-v2"] = true, true },
		},
		"only if all have failed, and one does not answer and is skipped": {
			stages: []delivery.Stage{sync}, policy: delivery.RollbackPolicy{OnlyIfAllFail: true}, phase: delivery.Failed, rolled: delivery.Succeeded,
			want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
			prepare: func(w *world) {
				w.clusters["c0"].refused["web-v2"], w.clusters["c1"].silent = true, true
				w.release.Stages[0].Failure.OnUnreachable = delivery.Skip
			},
		},
		"only if all have failed, and a stage that is about none has": {
			stages: []delivery.Stage{sync, fails}, policy: delivery.RollbackPolicy{OnlyIfAllFail: true}, phase: delivery.Failed, rolled: delivery.Succeeded,
			want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
		},
		"a failure before anything was touched": {
			stages: []delivery.Stage{fails}, phase: delivery.Failed, rolled: delivery.Succeeded, want: map[string]string{"c0": "web-v1", "c1": "web-v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(2, slices.Clone(test.stages)...)
			w.release.Rollback = test.policy
			if test.prepare != nil {
				test.prepare(w)
			}
			w.run(t, 30*time.Minute, nil)
			for _, c := range w.clusters {
				c.silent = false
			}
			w.pass(5 * time.Second)
			if w.status.Phase != test.phase || w.status.RolledBack != test.rolled || !strings.Contains(w.status.Message, test.message) {
				t.Errorf("%s, rolled back %q, %q: %s", w.status.Phase, w.status.RolledBack, w.status.Message, render(w.status))
			}
			if got := w.primary(); !maps.Equal(got, test.want) {
				t.Errorf("%v run, want %v", got, test.want)
			}
		})
	}
}

// Where what ran before was delivered otherwise, each cluster has to prove it anew, even one whose part of the set is what it was.
func TestARollbackToAnotherDeliveryIsProvenAnew(t *testing.T) {
	w := newWorld(2, delivery.Stage{ID: "fails", Name: delivery.StageAnalysis})
	w.release.Otherwise = true
	w.next()
	for _, target := range w.stage("rollback").Targets {
		if w.status.Phase != delivery.RollingBack || target.Phase != delivery.Running || w.status.Edits[target.Cluster] != 1 {
			t.Errorf("%s", render(w.status))
		}
	}
	w.run(t, time.Minute, nil)
	if w.status.RolledBack != delivery.Succeeded {
		t.Errorf("%s", render(w.status))
	}
}

func TestARollbackGoesToAllAtOnce(t *testing.T) {
	one := intstr.FromInt32(1)
	w := newWorld(4, delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: &one}}}, delivery.Stage{ID: "fails", Name: delivery.StageAnalysis})
	w.until(t, "it is rolled back", time.Minute, func() bool { return w.status.Phase == delivery.RollingBack })
	for _, target := range w.stage("rollback").Targets {
		if !target.Start.Equal(w.stage("rollback").Start) {
			t.Errorf("%s begins at %s", target.Cluster, target.Start)
		}
	}
	if len(w.stage("rollback").Targets) != 4 {
		t.Errorf("%v", phases(w.stage("rollback")))
	}
}

// A rollback of a canary gives its traffic back first, and of a baseline that compares with it.
func TestARollbackDrainsWhatItRemoves(t *testing.T) {
	stages := append(canary(50), delivery.Stage{ID: "baseline", Name: delivery.StageBaselineRollout}, delivery.Stage{ID: "wait", Name: delivery.StageWait, Wait: time.Minute},
		delivery.Stage{ID: "fails", Name: delivery.StageAnalysis})
	w := newWorld(2, stages...)
	w.until(t, "it waits", 10*time.Minute, func() bool { return w.stage("wait").Phase == delivery.Running })
	if part, _ := w.status.Set.Part(delivery.Baseline, "c0"); part.Revision != v1 || part.Replicas["Deployment/web"] != 1 {
		t.Errorf("the baseline is %+v, want v1 in the canary's size", part)
	}
	w.until(t, "it is rolled back", 10*time.Minute, func() bool { return w.status.Phase == delivery.RollingBack })
	if got := w.status.Set.Shares("c0"); got[delivery.Canary] != 0 || got[delivery.Primary] != 100 {
		t.Errorf("the shares are %v", got)
	}
	began := w.now
	w.until(t, "the canary is gone", time.Minute, func() bool { _, has := w.status.Set[delivery.Canary]; return !has })
	if took := w.now.Sub(began); took < 30*time.Second {
		t.Errorf("it was gone after %s", took)
	}
	w.run(t, time.Minute, nil)
	if !w.status.Set.Equal(*w.release.Stable) || w.status.RolledBack != delivery.Succeeded {
		t.Errorf("%s", render(w.status))
	}
}

// Rule 6. A cluster that only the failed release has added gets no requests first, stays for the drain time, and then runs nothing.
func TestARollbackDrainsAClusterThatItCleans(t *testing.T) {
	fails := delivery.Stage{ID: "fails", Name: delivery.StageAnalysis} // there is nothing to measure
	for name, test := range map[string]struct {
		deaf  bool
		drain time.Duration
		least time.Duration
		phase delivery.Phase
	}{
		"for the drain time":              {drain: 30 * time.Second, least: 30 * time.Second, phase: delivery.Succeeded},
		"at once, where nobody drains":    {phase: delivery.Succeeded},
		"not for ever if it does nothing": {deaf: true, drain: 30 * time.Second, least: 10 * time.Minute, phase: delivery.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(2, sync, fails)
			w.release.Drain = test.drain
			for _, set := range []*delivery.Set{&w.release.Current, w.release.Stable, &w.clusters["c1"].applied.set} {
				delete((*set)[delivery.Primary].Clusters, "c1")
			}
			w.until(t, "it is rolled back", time.Minute, func() bool { return w.status.Phase == delivery.RollingBack })
			began, c := w.now, w.clusters["c1"]
			if part, there := w.status.Set.Part(delivery.Primary, "c1"); there != (test.drain > 0) || part.Traffic > 0 {
				t.Errorf("at first the cluster is to run %+v (%t)", part, there)
			}
			w.run(t, 20*time.Minute, func() {
				if test.deaf {
					c.told = nil
				}
			})
			if took := w.now.Sub(began); took < test.least || took > test.least+10*time.Second {
				t.Errorf("it takes %s", took)
			}
			if _, there := w.status.Set.Part(delivery.Primary, "c1"); there || w.target(t, "rollback", "c1").Phase != test.phase || w.status.RolledBack != delivery.Succeeded {
				t.Errorf("%s", render(w.status))
			}
		})
	}
}

// A message that says what was put back says why as well: to whom it may concern has it in one place.
func TestARollbackSaysWhyThereWasOne(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*world)
		want    []string
	}{
		"the stage, the cluster and what it says": {
			prepare: func(w *world) { w.clusters["c1"].refused["web-v2"] = true },
			want:    []string{"rollback Succeeded: put back what was there before; stage sync failed: ", `cluster "c1" refuses the primary of web-v2: denied by policy`},
		},
		"who wanted it": {
			prepare: func(w *world) { w.clusters["c1"].broken["web-v2"], w.orders.Rollback = true, "jane" },
			want:    []string{"rollback Succeeded: put back what was there before; rolled back by jane"},
		},
		"who cancelled it": {
			prepare: func(w *world) {
				w.clusters["c1"].broken["web-v2"], w.orders.Cancel = true, &delivery.Cancel{By: "joe", Rollback: true}
			},
			want: []string{"; rolled back by joe"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(2, sync)
			w.next()
			test.prepare(w)
			w.until(t, "it is rolled back", 15*time.Minute, func() bool { return w.status.Phase == delivery.RollingBack })
			for _, want := range test.want[len(test.want)-1:] {
				if !strings.Contains(w.status.Message, strings.TrimPrefix(want, "rollback Succeeded: put back what was there before; ")) {
					t.Errorf("meanwhile it says %q, want %q", w.status.Message, want)
				}
			}
			w.status = again(t, w.status) // a restart loses nothing of it
			w.run(t, 15*time.Minute, nil)
			for _, want := range test.want {
				if !strings.Contains(w.status.Message, want) {
					t.Errorf("it says %q, want %q", w.status.Message, want)
				}
			}
		})
	}
}

// What share of the replicas a target has belongs to what runs there: it is put back with that.
func TestARollbackPutsBackTheWeights(t *testing.T) {
	fails := delivery.Stage{ID: "fails", Name: delivery.StageAnalysis}
	w := newWorld(3, sync, fails)
	for cluster, weight := range map[string]int32{"c0": 50, "c1": 30, "c2": 20} {
		part := w.release.Current[delivery.Primary].Clusters[cluster]
		part.Weight = &weight
		w.release.Current[delivery.Primary].Clusters[cluster] = part
	}
	stable := w.release.Current.Clone()
	w.release.Stable, w.release.Whole = &stable, true
	w.release.Targets, w.release.Weights = w.release.Targets[:2], map[string]int32{"c0": 0, "c1": 100}
	weights := func() map[string]int32 {
		out := map[string]int32{}
		for cluster, part := range again(t, w.status).Set[delivery.Primary].Clusters {
			out[cluster] = *part.Weight
		}
		return out
	}
	w.until(t, "c2 is left", 10*time.Minute, func() bool { return w.stage("sync").Phase == delivery.Succeeded })
	// The rollback has begun by then, so that those of the release are known of its last edit alone.
	w.run(t, 10*time.Minute, nil)
	if want := map[string]int32{"c0": 50, "c1": 30, "c2": 20}; !maps.Equal(weights(), want) || w.status.RolledBack != delivery.Succeeded {
		t.Errorf("the weights are %v, want %v: %s", weights(), want, render(w.status))
	}

	w = newWorld(2, sync)
	w.release.Weights = map[string]int32{"c0": 0, "c1": 100}
	w.run(t, 10*time.Minute, nil)
	if want := map[string]int32{"c0": 0, "c1": 100}; !maps.Equal(weights(), want) {
		t.Errorf("the weights are %v, want %v", weights(), want)
	}
}
