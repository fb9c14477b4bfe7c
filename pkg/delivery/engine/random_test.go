//go:build !race

// The engine has no goroutine of its own, and these thousands of runs take five times as long with the race detector.

package engine

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/waves"
)

// Rule 1: what a cluster said before, or says of something else, proves nothing. Statuses come late and in random steps.
func TestNoWaveBeginsEarlyInAThousandRuns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		w := randomWorld(seed)
		began := map[string]bool{}
		w.run(t, time.Hour, func() {
			before := w.status
			for _, target := range w.stage(rollout).Targets {
				if target.Phase == delivery.NotStarted || began[target.Cluster] {
					continue
				}
				began[target.Cluster] = true
				for _, earlier := range w.stage(rollout).Targets {
					if earlier.Wave < target.Wave && !w.holds(earlier.Cluster) {
						t.Fatalf("seed %d: wave %d began in %s when %s of wave %d was not done: %s", seed, target.Wave, target.Cluster, earlier.Cluster,
							earlier.Wave, render(before))
					}
				}
			}
		})
		if w.status.Phase != delivery.Succeeded {
			t.Fatalf("seed %d: %s", seed, render(w.status))
		}
		for cluster := range w.clusters {
			if !w.holds(cluster) {
				t.Errorf("seed %d: the release has succeeded, and %s does not run it", seed, cluster)
			}
		}
		if len(began) != len(w.clusters) {
			t.Errorf("seed %d: %d of %d clusters began", seed, len(began), len(w.clusters))
		}
	}
}

// The invariants of every step: shares add up, no more than may be are under way, and the same question has the same answer.
func TestEveryStepOfRandomRunsKeepsWhatMustHold(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		w := randomWorld(seed)
		w.run(t, time.Hour, func() {
			now, seen := w.now, w.observed()
			first := Next(w.release, w.status, seen, now)
			if second := Next(w.release, first.Status, seen, now); !reflect.DeepEqual(first, second) {
				t.Fatalf("seed %d: asked again, it goes on:\n%s\n%s", seed, render(first.Status), render(second.Status))
			}
			for _, cluster := range first.Status.Set.Clusters() {
				total := int32(0)
				for name, share := range first.Status.Set.Shares(cluster) {
					total += share
					if present, _ := w.status.Set.Part(name, cluster); share > present.Traffic && seen.Clusters[cluster].Variants[name].Endpoints < 1 && len(w.status.Stages) > 0 {
						t.Fatalf("seed %d: %s of %s gets traffic without an endpoint", seed, name, cluster)
					}
				}
				if total != 100 {
					t.Fatalf("seed %d: the shares of %s add up to %d: %v", seed, cluster, total, first.Status.Set.Shares(cluster))
				}
			}
			for i, of := range first.Status.Stages {
				if running := slices.DeleteFunc(slices.Clone(of.Targets), func(s delivery.TargetStatus) bool { return s.Phase != delivery.Running }); len(running) > 0 {
					if wave := waves.Current(of.Targets, nil); slices.ContainsFunc(running, func(s delivery.TargetStatus) bool { return s.Wave != wave }) {
						t.Fatalf("seed %d: stage %d has several waves under way: %s", seed, i, render(first.Status))
					}
				}
			}
		})
	}
}

// A restart reads back what was written, and nothing else. What the engine knew besides is lost. It comes between all steps, and after the first of each
// stage anyway, and whoever goes on asks at once.
func TestARestartAnywhereGivesTheSameEnd(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(80) {
		plain, killed := randomWorld(seed), randomWorld(seed)
		plain.run(t, time.Hour, nil)
		kills, began := rand.New(rand.NewPCG(seed, 9)), map[string]bool{}
		revisions := map[string][]string{}
		killed.run(t, time.Hour, func() {
			boundary := ""
			for _, of := range killed.status.Stages {
				if of.Phase == delivery.Running && !began[of.ID] {
					began[of.ID], boundary = true, of.Name
				}
			}
			if kills.IntN(3) == 0 || boundary != "" {
				killed.status, killed.news = again(t, killed.status), true
				kinds[boundary]++
			}
			if kills.IntN(5) == 0 { // it was asked, and died before it could write
				killed.ask()
			}
			for cluster, revision := range killed.primary() {
				if last := revisions[cluster]; len(last) == 0 || last[len(last)-1] != revision {
					revisions[cluster] = append(last, revision)
				}
			}
		})
		if want, got := render(plain.status), render(killed.status); want != got {
			t.Fatalf("seed %d: ends with\n%s\nwant\n%s", seed, got, want)
		}
		if len(killed.people.due) != len(plain.people.due) || len(killed.people.requests) != len(plain.people.requests) {
			t.Errorf("seed %d: people were asked for %v, want %v", seed, slices.Sorted(maps.Keys(killed.people.due)), slices.Sorted(maps.Keys(plain.people.due)))
		}
		for cluster, got := range revisions {
			if !slices.Equal(got, []string{v1.Name, v2.Name}) {
				t.Errorf("seed %d: %s had %v one after the other", seed, cluster, got)
			}
		}
	}
	for _, kind := range []string{
		delivery.StageCanaryRollout, delivery.StageBaselineRollout, delivery.StageApproval, delivery.StageTrafficRouting, delivery.StageAnalysis, delivery.StageScript,
		delivery.StageWait, delivery.StagePrimaryRollout, delivery.StageBaselineClean, delivery.StageCanaryClean,
	} {
		if kinds[kind] < 10 {
			t.Errorf("%d restarts at the beginning of %s show too little", kinds[kind], kind)
		}
	}
}

// A run in which clusters fall silent, come back, break and leave ends all the same, and leaves nothing half done where it can be reached.
func TestRandomFailuresEndInOneOfTwoStates(t *testing.T) {
	t.Parallel()
	ends := map[delivery.Phase]int{}
	for seed := range uint64(200) {
		w := randomWorld(seed)
		r := rand.New(rand.NewPCG(seed, 11))
		for i := range w.release.Stages {
			w.release.Stages[i].Failure = delivery.Failure{MaxFailures: r.Int32N(2), OnUnreachable: []string{delivery.Wait, delivery.Skip, delivery.Fail}[r.IntN(3)]}
		}
		w.people.fails, w.people.bad = r.IntN(10) == 0, r.IntN(10) == 0
		for _, c := range w.sorted() {
			c.broken[v2.Name] = r.IntN(8) == 0
			c.refused[v2.Name] = r.IntN(12) == 0
		}
		w.run(t, 4*time.Hour, func() {
			w.restart(t)
			for _, c := range w.sorted() {
				if r.IntN(400) == 0 {
					c.silent = !c.silent
				}
			}
		})
		ends[w.status.Phase]++
		// Once all are back, everybody has what the set says, whatever has happened.
		for _, c := range w.clusters {
			c.silent = false
		}
		for range 60 {
			w.now = w.now.Add(time.Second)
			w.carry()
		}
		for cluster, c := range w.clusters {
			if c.applied.set.Differs(w.status.Set, cluster) && w.status.Edits[cluster] > 0 {
				t.Errorf("seed %d: %s does not have what the set says", seed, cluster)
			}
		}
		last := phases(w.status.Stages[len(w.status.Stages)-1])
		if of := w.stage("rollback"); of.ID != "" {
			last = phases(of) // scripts are taken back after it
		}
		for cluster := range w.clusters {
			switch {
			case last[cluster] == delivery.Failed:
			case w.status.RolledBack != "" && w.status.Set.Differs(*w.release.Stable, cluster):
				t.Errorf("seed %d: it was rolled back, and %s is not to run what it ran before: %s", seed, cluster, render(w.status))
			case w.status.Phase == delivery.Succeeded && len(w.status.Set.Shares(cluster)) != 1:
				t.Errorf("seed %d: it has succeeded, and %s has variants: %v", seed, cluster, w.status.Set.Shares(cluster))
			}
		}
	}
	if ends[delivery.Succeeded] < 15 || ends[delivery.Failed] < 15 {
		t.Errorf("the runs show too little: %v", ends)
	}
}
