package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// counts has the clusters of a world report how many pods they have, and run more or fewer of the primary.
func (w *world) counts() {
	for _, name := range []string{"c0", "c1", "c2"} {
		c := w.clusters[name]
		if c == nil {
			continue
		}
		for variant, report := range c.heard.Variants {
			part, has := c.applied.set.Part(variant, name)
			if report.Endpoints = 0; has && report.Ready {
				report.Endpoints = c.replicas
				if variant != delivery.Primary {
					report.Endpoints = part.Replicas["Deployment/web"]
				}
			}
			c.heard.Variants[variant] = report
		}
		c.heard.Wanted = map[string]int32{"Deployment/web": c.replicas}
	}
}

// byPods is a world whose requests are shared out by numbers of pods.
func byPods(clusters int, replicas int32, stages ...delivery.Stage) *world {
	w := newWorld(clusters, stages...)
	w.release.ByPods = true
	for _, c := range w.sorted() {
		c.replicas = replicas
	}
	w.counts()
	return w
}

// tick lets a second go by.
func (w *world) tick() {
	w.now = w.now.Add(time.Second)
	w.carry()
	w.counts()
	w.next()
}

func (w *world) ticks(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if w.tick(); is() {
			return
		}
	}
	t.Fatalf("it does not come to %s: %s", what, render(w.status))
}

// copied is what a cluster is to run of the canary, and its share.
func (w *world) copied(cluster string) string {
	part, has := w.status.Set.Part(delivery.Canary, cluster)
	if !has {
		return "none"
	}
	return fmt.Sprintf("%d pods, %d%%", part.Replicas["Deployment/web"], part.Traffic)
}

func shares(id string, canary int32) delivery.Stage {
	return delivery.Stage{ID: id, Name: delivery.StageTrafficRouting, Traffic: map[string]int32{delivery.Canary: canary}}
}

var (
	onePod = delivery.Stage{ID: "canary", Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: intstr.FromInt32(1), PerCluster: true}}
	asks   = delivery.Stage{ID: "agree", Name: delivery.StageApproval}
	cleans = delivery.Stage{ID: "clean", Name: delivery.StageCanaryClean}
)

func (w *world) ran(id string) func() bool {
	return func() bool { return w.stage(id).Phase == delivery.Succeeded }
}

// What grows is ready before it gets more requests, and what shrinks gets fewer before.
func TestSharesByNumbersOfPods(t *testing.T) {
	w := byPods(2, 8, onePod, shares("fifth", 20), shares("all", 100), shares("half", 50), shares("again", 20), shares("none", 0), cleans)
	was := map[string][]string{}
	w.ticks(t, "the end", func() bool {
		for _, cluster := range []string{"c0", "c1"} {
			if got := w.copied(cluster); len(was[cluster]) == 0 || was[cluster][len(was[cluster])-1] != got {
				was[cluster] = append(was[cluster], got)
			}
		}
		return w.status.Phase.Ended()
	})
	want := "1 pods, 0%; 2 pods, 0%; 2 pods, 20%; 8 pods, 20%; 8 pods, 100%; 8 pods, 50%; 8 pods, 20%; 2 pods, 20%; 2 pods, 0%; none"
	for _, cluster := range []string{"c0", "c1"} {
		if got := strings.Join(was[cluster], "; "); got != want || w.status.Phase != delivery.Succeeded {
			t.Errorf("%s: %s was to run\n%s\nwant\n%s", w.status.Phase, cluster, got, want)
		}
	}
	for id, want := range map[string]string{"fifth": "canary 2 of 10 pods: 20%", "half": "canary 8 of 16 pods: 50%", "all": "", "none": ""} {
		if got := w.stage(id).Targets[0].Message; got != want {
			t.Errorf("%s: what is there is said to be %q, want %q", id, got, want)
		}
	}
}

func TestACopyThatIsNotReadyGetsNoMoreRequests(t *testing.T) {
	w := byPods(1, 8, onePod, shares("fifth", 20))
	w.release.Rollback.Disabled = true
	w.ticks(t, "a canary", w.ran("canary"))
	w.clusters["c0"].broken[v2.Name] = true
	for range 60 {
		w.tick()
	}
	if got := w.copied("c0"); got != "2 pods, 0%" || w.stage("fifth").Phase != delivery.Running {
		t.Errorf("it is to run %s: %s", got, render(w.status))
	}
	w.ticks(t, "the end", func() bool { return w.status.Phase.Ended() })
	if got := w.copied("c0"); got != "2 pods, 0%" || w.status.Phase != delivery.Failed {
		t.Errorf("it has ended %s with %s", w.status.Phase, got)
	}
}

// An autoscaler, or somebody, changes the primary at any time.
func TestCopiesFollowThePrimary(t *testing.T) {
	w := byPods(2, 8, onePod, shares("fifth", 20), asks, delivery.Stage{ID: "primary", Name: delivery.StagePrimaryRollout})
	w.ticks(t, "a fifth", w.ran("fifth"))
	w.clusters["c0"].replicas = 16
	w.tick()
	if got := w.copied("c0") + "; " + w.copied("c1"); got != "4 pods, 20%; 2 pods, 20%" {
		t.Errorf("beside 16 and 8 pods: %s", got)
	}
	w.clusters["c0"].replicas = 0
	w.tick()
	if got := w.copied("c0"); got != "4 pods, 20%" {
		t.Errorf("beside nobody: %s", got)
	}
	w.clusters["c0"].replicas = 4
	assent(w, "jane", "")()
	w.ticks(t, "the end", func() bool { return w.status.Phase.Ended() })
	if got := w.copied("c0"); w.status.Phase != delivery.Succeeded || got != "1 pods, 20%" {
		t.Errorf("%s: beside 4: %s", w.status.Phase, got)
	}
	w.clusters["c1"].replicas = 20 // nobody has cleaned the canary
	w.tick()
	if got := w.copied("c1"); got != "5 pods, 20%" {
		t.Errorf("after the end beside 20: %s", got)
	}
}

func TestARollbackTakesBackTheNumbers(t *testing.T) {
	w := byPods(2, 8, onePod, shares("half", 50), asks)
	w.ticks(t, "half", w.ran("half"))
	w.orders.Rollback = "jane"
	w.ticks(t, "the end", func() bool { return w.status.Phase.Ended() })
	if w.status.RolledBack != delivery.Succeeded || !w.status.Set.Equal(*w.release.Stable) {
		t.Errorf("%s", render(w.status))
	}
}

func TestWhatNumbersOfPodsCannotMakeIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		stages []delivery.Stage
		want   string
	}{
		"too great a part":       {stages: []delivery.Stage{onePod, shares("most", 90)}, want: "stages[1].with.traffic.primary: by numbers of pods"},
		"too great a part there": {stages: []delivery.Stage{{ID: "canary", Name: delivery.StageCanaryRollout, Targets: []string{"c0"}, Copy: onePod.Copy}, shares("half", 45)}, want: `cluster "c0": traffic.primary: by numbers of pods`},
		"one that is to get none": {stages: []delivery.Stage{onePod, {ID: "base", Name: delivery.StageBaselineRollout, Copy: onePod.Copy}, shares("fifth", 20)},
			want: `cluster "c0": traffic.baseline: by numbers of pods either one variant gets everything`},
	} {
		t.Run(name, func(t *testing.T) {
			w := byPods(2, 8, test.stages...)
			w.release.Rollback.Disabled = true
			w.ticks(t, "the end", func() bool { return w.status.Phase.Ended() })
			if w.status.Phase != delivery.Failed || !strings.Contains(w.status.Message, test.want) {
				t.Errorf("%s: %s, want %s", w.status.Phase, w.status.Message, test.want)
			}
		})
	}
}

// Whatever is delayed and whenever the primary grows or shrinks: nobody gets requests for whom there are no pods, and the end is what was asked for.
func TestRandomRunsByNumbersOfPods(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 13))
		canary := 5 + r.Int32N(70)
		w := newWorld(3, onePod, shares("some", canary), delivery.Stage{ID: "primary", Name: delivery.StagePrimaryRollout, Waves: randomWaves(r)}, shares("none", 0), cleans)
		w.release.ByPods, w.random, w.release.MinReady = true, r, time.Duration(r.IntN(4))*time.Second
		for range 3000 {
			w.now = w.now.Add(time.Second)
			if r.IntN(60) == 0 {
				w.sorted()[r.IntN(3)].replicas = 1 + r.Int32N(12)
			}
			if w.carry(); r.IntN(3) == 0 {
				w.restart(t)
			}
			for _, c := range w.sorted() {
				c.heard.Wanted = map[string]int32{"Deployment/web": c.replicas}
			}
			w.next()
			for cluster, c := range w.clusters {
				told, _ := w.status.Set.Part(delivery.Canary, cluster)
				has, _ := c.applied.set.Part(delivery.Canary, cluster)
				if told.Traffic == 100 && has.Traffic == 100 && has.Replicas["Deployment/web"] < 1 {
					t.Fatalf("seed %d: %s has everything go to nobody", seed, cluster)
				}
			}
			if w.status.Phase.Ended() {
				break
			}
		}
		if w.status.Phase != delivery.Succeeded || len(w.status.Set) != 1 {
			t.Fatalf("seed %d: %s", seed, render(w.status))
		}
	}
}
