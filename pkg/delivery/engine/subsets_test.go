package engine

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// copies are how many pods of a variant each cluster is to run.
func (w *world) copies(variant string) map[string]int32 {
	out := map[string]int32{}
	for cluster, part := range w.status.Set[variant].Clusters {
		out[cluster] = part.Replicas["Deployment/web"]
	}
	return out
}

// Two stages of a pipeline may be about different targets, with different numbers of replicas: neither touches what the other has done.
func TestStagesOfOneKindAreAboutTargetsOfTheirOwn(t *testing.T) {
	rollout := func(id, replicas string, targets ...string) delivery.Stage {
		return delivery.Stage{ID: id, Name: delivery.StageCanaryRollout, Targets: targets, Copy: &delivery.CopyOptions{Replicas: intstr.Parse(replicas)}}
	}
	wait := func(id string) delivery.Stage {
		return delivery.Stage{ID: id, Name: delivery.StageWait, Wait: 10 * time.Second}
	}
	w := newWorld(4,
		rollout("few", "10%", "c0"), wait("then"), rollout("many", "50%", "c1", "c2"), wait("later"),
		delivery.Stage{ID: "clean", Name: delivery.StageCanaryClean, Targets: []string{"c0"}}, wait("last"), rollout("more", "7", "c1"), wait("end"),
	)
	for _, c := range w.clusters {
		c.replicas, c.heard.Wanted = 10, map[string]int32{"Deployment/web": 10}
	}
	for _, step := range []struct {
		stage  string
		want   map[string]int32
		target []string
	}{
		{"then", map[string]int32{"c0": 1}, []string{"c0"}},
		{"later", map[string]int32{"c0": 1, "c1": 5, "c2": 5}, []string{"c0", "c1", "c2"}},
		{"last", map[string]int32{"c1": 5, "c2": 5}, []string{"c0", "c1", "c2"}},
		{"end", map[string]int32{"c1": 7, "c2": 5}, []string{"c0", "c1", "c2"}},
	} {
		w.until(t, "stage "+step.stage+" runs", time.Minute, func() bool { return w.stage(step.stage).Phase == delivery.Running })
		if got := w.copies(delivery.Canary); !maps.Equal(got, step.want) {
			t.Errorf("before stage %s the canary has %v, want %v", step.stage, got, step.want)
		}
		if told := w.status.Edits; len(told) != len(step.target) {
			t.Errorf("before stage %s %v were told something, want %v", step.stage, told, step.target)
		}
	}
	w.run(t, time.Minute, nil)
	if w.status.Phase != delivery.Succeeded || w.primary()["c0"] != "web-v1" {
		t.Errorf("%s, %v: %s", w.status.Phase, w.primary(), render(w.status))
	}
}

// What has succeeded and what is under way goes back to the revision of before. What has not begun is not told anything new.
func TestARollbackTakesBackWhatIsDoneAndWhatIsUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		timeout time.Duration
		// then happens once the second wave is under way.
		then    func(*world)
		phases  map[string]delivery.Phase
		ends    delivery.Phase
		message string
	}{
		"somebody asks for it": {
			then:   func(w *world) { w.orders.Rollback = "jane" },
			phases: map[string]delivery.Phase{"c0": delivery.Succeeded, "c1": delivery.Cancelled, "c2": delivery.Cancelled, "c3": delivery.Cancelled},
			ends:   delivery.Cancelled, message: "cancelled by jane",
		},
		"the stage has taken too long": {
			timeout: 90 * time.Second,
			phases:  map[string]delivery.Phase{"c0": delivery.Succeeded, "c1": delivery.Failed, "c2": delivery.Failed, "c3": delivery.Failed},
			ends:    delivery.Failed, message: "it has not ended within 1m30s",
		},
		"one of them fails, and the other is let go on": {
			then:   func(w *world) { w.clusters["c1"].refused["web-v2"] = true },
			phases: map[string]delivery.Phase{"c0": delivery.Succeeded, "c1": delivery.Failed, "c2": delivery.Succeeded, "c3": delivery.NotStarted},
			ends:   delivery.Failed, message: `cluster "c1" refuses the primary of web-v2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			two := intstr.FromInt32(2)
			w := newWorld(4, delivery.Stage{
				ID: rollout, Name: delivery.StagePrimaryRollout, Timeout: test.timeout,
				Waves: []delivery.Wave{{MaxConcurrency: one()}, {MaxConcurrency: &two, Targets: []string{"c1", "c2"}}, {}},
			})
			w.release.MinReady = time.Minute
			w.until(t, "the second wave is under way", 2*time.Minute, func() bool { return phases(w.stage(rollout))["c1"] == delivery.Running })
			w.pass(2 * time.Second)
			if want := map[string]string{"c0": "web-v2", "c1": "web-v2", "c2": "web-v2", "c3": "web-v1"}; !maps.Equal(w.primary(), want) {
				t.Fatalf("%v run, want %v", w.primary(), want)
			}
			if test.then != nil {
				test.then(w)
			}
			w.run(t, 10*time.Minute, func() {})
			w.pass(2 * time.Second)
			if got := phases(w.stage(rollout)); !maps.Equal(got, test.phases) {
				t.Errorf("%v, want %v", got, test.phases)
			}
			if w.status.Phase != test.ends || w.status.RolledBack != delivery.Succeeded || !strings.Contains(w.stage(rollout).Message, test.message) {
				t.Errorf("%s, rolled back %q: %s", w.status.Phase, w.status.RolledBack, w.stage(rollout).Message)
			}
			if want := map[string]string{"c0": "web-v1", "c1": "web-v1", "c2": "web-v1", "c3": "web-v1"}; !maps.Equal(w.primary(), want) {
				t.Errorf("%v run, want %v", w.primary(), want)
			}
			if w.status.Edits["c3"] > 0 {
				t.Errorf("c3, which had not begun, was told something: %v", w.status.Edits)
			}
		})
	}
}
