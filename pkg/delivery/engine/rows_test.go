package engine

import (
	"maps"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Rows of KubeVela's document that are about how a roll-out goes.

// K28: a roll-out goes batch by batch, and what is measured between two of them lets it go on or ends it.
func TestK28ARollOutGoesInBatchesWithAnalysisBetween(t *testing.T) {
	for name, test := range map[string]struct {
		errors float64
		phase  delivery.Phase
		want   map[string]string
	}{
		"it goes on while all is well": {0, delivery.Succeeded, map[string]string{"c0": "web-v2", "c1": "web-v2", "c2": "web-v2"}},
		"it ends when all is not":      {1, delivery.Failed, map[string]string{"c0": "web-v1", "c1": "web-v1", "c2": "web-v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			metric := delivery.Metric{Name: "errors", Strategy: delivery.Threshold, Max: ptr.To(0.01), Interval: 10 * time.Second}
			w := newWorld(3, append(canary(20),
				delivery.Stage{ID: "look", Name: delivery.StageAnalysis, Analysis: &delivery.Analysis{Duration: 30 * time.Second, Metrics: []delivery.Metric{metric}}},
				delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: one()}, {}}},
				delivery.Stage{ID: "clean", Name: delivery.StageCanaryClean})...)
			seen := map[int]bool{}
			for end := w.now.Add(time.Hour); !w.status.Phase.Ended(); w.now = w.now.Add(time.Second) {
				if w.now.After(end) {
					t.Fatalf("it never ends: %s", render(w.status))
				}
				w.carry()
				for _, due := range w.next().Measure {
					if !due.At.After(w.now) {
						w.measured["look"] = append(w.measured["look"], delivery.Measurement{Metric: due.Metric, Time: w.now, Values: []float64{test.errors}})
					}
				}
				rolled := 0
				for _, revision := range w.primary() {
					if revision == "web-v2" {
						rolled++
					}
				}
				seen[rolled] = true
				if rolled > 0 && w.stage("look").Phase != delivery.Succeeded {
					t.Fatalf("%d clusters run it before it is found to be well", rolled)
				}
			}
			if got := w.primary(); w.status.Phase != test.phase || !maps.Equal(got, test.want) {
				t.Errorf("%s: %v run, want %v", w.status.Phase, got, test.want)
			}
			if batches := seen[1]; batches != (test.phase == delivery.Succeeded) {
				t.Errorf("so many clusters ran it, one time or another: %v", seen)
			}
		})
	}
}

// K42: clusters in an order, so many at a time, as argocd-progressive-rollout has it with maxParallel and maxTargets.
func TestK42ClustersFollowEachOtherInWavesOfSoManyAtATime(t *testing.T) {
	two := one()
	two.IntVal = 2
	w := newWorld(6, delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{
		{Targets: []string{"c5"}}, {MaxConcurrency: one(), Targets: []string{"c3", "c4"}}, {MaxConcurrency: two, Targets: []string{"c0", "c1", "c2"}},
	}})
	order, most := []string{"c5", "c3", "c4", "c0", "c1", "c2"}, []int{1, 1, 2}
	wave := map[string]int{"c5": 0, "c3": 1, "c4": 1, "c0": 2, "c1": 2, "c2": 2}
	w.run(t, time.Hour, func() {
		of := phases(w.stage("roll"))
		running := make([]int, len(most))
		for _, cluster := range order {
			if of[cluster] != delivery.Running {
				continue
			}
			running[wave[cluster]]++
			for _, before := range order {
				if wave[before] < wave[cluster] && of[before] != delivery.Succeeded {
					t.Fatalf("%s begins while %s, of an earlier wave, is %s", cluster, before, of[before])
				}
			}
		}
		for i, n := range running {
			if n > most[i] {
				t.Fatalf("%d clusters of wave %d at a time, want %d", n, i, most[i])
			}
		}
	})
	if w.status.Phase != delivery.Succeeded || len(w.primary()) != 6 {
		t.Errorf("%s: %v", w.status.Phase, w.primary())
	}
}
