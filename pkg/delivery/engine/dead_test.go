package engine

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// fiveRolled is a release to five clusters, each of which takes a minute to prove itself. Dead is one that does not answer, "" for none, and silent for
// how long it had not when the release began.
func fiveRolled(failure delivery.Failure, waves []delivery.Wave, dead string, silent time.Duration) *world {
	w := newWorld(5, delivery.Stage{ID: rollout, Name: delivery.StagePrimaryRollout, Waves: waves, Failure: failure})
	w.release.MinReady, w.release.Rollback.Disabled = time.Minute, true
	if dead != "" {
		w.clusters[dead].silent, w.clusters[dead].heard.Heard = true, t0.Add(-silent)
	}
	w.next()
	return w
}

// othersTake is how long it takes until all clusters but the dead one are done.
func (w *world) othersTake(t *testing.T, dead string) time.Duration {
	t.Helper()
	w.until(t, "the others are done", time.Hour, func() bool {
		of := phases(w.stage(rollout))
		delete(of, dead)
		for _, phase := range of {
			if phase != delivery.Succeeded {
				return false
			}
		}
		return true
	})
	return w.now.Sub(t0)
}

// Rule 3.
func TestOneDeadClusterOfFiveCostsTheOthersATenthAtMost(t *testing.T) {
	two := intstr.FromInt32(2)
	waved := []delivery.Wave{{MaxConcurrency: &two}, {}}
	skip, wait := delivery.Failure{OnUnreachable: delivery.Skip}, delivery.Failure{}
	for name, test := range map[string]struct {
		failure delivery.Failure
		waves   []delivery.Wave
		dead    string
		silent  time.Duration
		// ends says whether the stage ends with the others, instead of waiting.
		ends bool
	}{
		"all at once, and it is skipped":                                  {failure: skip, dead: "c0", ends: true},
		"all at once, and it is waited for":                               {failure: wait, dead: "c0"},
		"in the first wave, and it is skipped":                            {failure: skip, waves: waved, dead: "c0", ends: true},
		"in the last wave, and it is skipped":                             {failure: skip, waves: waved, dead: "c4", ends: true},
		"in the last wave, and it is waited for":                          {failure: wait, waves: waved, dead: "c4"},
		"in the first wave, and it is waited for":                         {failure: wait, waves: waved, dead: "c0"},
		"a first wave of its own, and it is waited for":                   {failure: wait, waves: []delivery.Wave{{Targets: []string{"c0"}}, {}}, dead: "c0", silent: time.Minute},
		"a first wave of its own, and it was silent before":               {failure: skip, waves: []delivery.Wave{{Targets: []string{"c0"}}, {}}, dead: "c0", silent: time.Minute, ends: true},
		"a wave of one at a time, and it was silent before":               {failure: skip, waves: []delivery.Wave{{MaxConcurrency: one()}}, dead: "c2", silent: time.Minute, ends: true},
		"a wave of one at a time, and it is waited for":                   {failure: wait, waves: []delivery.Wave{{MaxConcurrency: one()}}, dead: "c2"},
		"a wave of one at a time that it was to begin, and is skipped in": {failure: skip, waves: []delivery.Wave{{MaxConcurrency: one()}}, dead: "c0", ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			alone := fiveRolled(test.failure, test.waves, "", 0).othersTake(t, test.dead)
			w := fiveRolled(test.failure, test.waves, test.dead, test.silent)
			if took := w.othersTake(t, test.dead); took > alone+alone/10 {
				t.Errorf("the others take %s, and %s if all answer", took, alone)
			}
			w.next()
			if of := w.stage(rollout); of.Phase.Ended() != test.ends || !test.ends && (of.Phase != delivery.Running || phases(of)[test.dead].Ended()) {
				t.Errorf("when they are done, the stage is %s: %v", of.Phase, phases(of))
			}
			if test.ends {
				return
			}
			w.clusters[test.dead].silent = false
			w.run(t, 2*time.Minute, nil)
			if w.status.Phase != delivery.Succeeded {
				t.Errorf("once it is back, the release is %s: %s", w.status.Phase, w.status.Message)
			}
		})
	}
}

func one() *intstr.IntOrString {
	out := intstr.FromInt32(1)
	return &out
}

// The waves behind a dead cluster begin once it has been silent for as long as the stage says, and no later. Where it is to be waited for, the stage does so, up
// to the deadline of the cluster.
func TestWavesDoNotWaitForADeadClusterOfAnEarlierOne(t *testing.T) {
	first := []delivery.Wave{{Targets: []string{"c0"}}, {}}
	others := func(phase delivery.Phase) map[string]delivery.Phase {
		return map[string]delivery.Phase{"c1": phase, "c2": phase, "c3": phase, "c4": phase}
	}
	for name, test := range map[string]struct {
		failure delivery.Failure
		begin   time.Duration // when the second wave begins, 0 if it never does
		dead    delivery.Phase
		phase   delivery.Phase
		message string
	}{
		"where it is waited for, and the stage fails":          {begin: 30 * time.Second, dead: delivery.Failed, phase: delivery.Failed, message: `no progress within 10m0s: cluster "c0" does not answer`},
		"or may go on, where one may fail":                     {failure: delivery.Failure{MaxFailures: 1}, begin: 30 * time.Second, dead: delivery.Failed, phase: delivery.Succeeded, message: `but for cluster "c0"`},
		"or fails at once":                                     {failure: delivery.Failure{OnUnreachable: delivery.Fail}, dead: delivery.Failed, phase: delivery.Failed, message: `cluster "c0" does not answer`},
		"for 30 s where it is skipped":                         {failure: delivery.Failure{OnUnreachable: delivery.Skip}, begin: 30 * time.Second, dead: delivery.Skipped, phase: delivery.Succeeded, message: `but for cluster "c0"`},
		"for as long as the stage says, where that is shorter": {failure: delivery.Failure{OnUnreachable: delivery.Skip, After: 10 * time.Second}, begin: 10 * time.Second, dead: delivery.Skipped, phase: delivery.Succeeded, message: `but for cluster "c0"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := fiveRolled(test.failure, first, "c0", 0)
			began := time.Duration(0)
			for w.now.Sub(t0) < 15*time.Minute && !w.status.Phase.Ended() {
				w.pass(time.Second)
				if w.status.Edits["c1"] > 0 && began == 0 {
					began = w.now.Sub(t0)
				}
			}
			if most := test.begin + 10*time.Second; began < test.begin || began > most || test.begin == 0 && began > 0 {
				t.Errorf("the second wave begins after %s, want %s", began, test.begin)
			}
			if w.status.Phase != test.phase || !strings.Contains(w.status.Message, test.message) {
				t.Errorf("%s: %s", w.status.Phase, w.status.Message)
			}
			want := others(delivery.Succeeded)
			if test.begin == 0 {
				want = others(delivery.NotStarted)
			}
			want["c0"] = test.dead
			if got := phases(w.stage(rollout)); !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
