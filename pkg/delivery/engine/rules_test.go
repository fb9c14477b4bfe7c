package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// pass lets so much time go by, in which the clusters do what they are told.
func (w *world) pass(by time.Duration) {
	for end := w.now.Add(by); w.now.Before(end); {
		w.now = w.now.Add(time.Second)
		w.carry()
		w.next()
	}
}

// until lets time go by until something is so.
func (w *world) until(t *testing.T, what string, most time.Duration, is func() bool) {
	t.Helper()
	for end := w.now.Add(most); !is(); {
		if w.now.After(end) {
			t.Fatalf("within %s, it is not so that %s: %s", most, what, render(w.status))
		}
		w.pass(time.Second)
	}
}

func (w *world) stage(id string) delivery.StageStatus {
	i := slices.IndexFunc(w.status.Stages, func(s delivery.StageStatus) bool { return s.ID == id })
	if i < 0 {
		return delivery.StageStatus{}
	}
	return w.status.Stages[i]
}

var sync = delivery.Stage{ID: "sync", Name: delivery.StageSync}

func TestAQuickSyncGoesToAllAtOnce(t *testing.T) {
	w := newWorld(3, sync)
	w.next()
	if want := map[string]delivery.Phase{"c0": delivery.Running, "c1": delivery.Running, "c2": delivery.Running}; !maps.Equal(phases(w.stage("sync")), want) {
		t.Fatalf("at once: %v", phases(w.stage("sync")))
	}
	w.clusters["c1"].silent = true // for less than is noticed
	w.pass(3 * time.Second)
	if want := map[string]delivery.Phase{"c0": delivery.Succeeded, "c1": delivery.Running, "c2": delivery.Succeeded}; !maps.Equal(phases(w.stage("sync")), want) {
		t.Fatalf("while one is late: %v", phases(w.stage("sync")))
	}
	w.clusters["c1"].silent = false
	w.run(t, time.Minute, nil)
	if want := map[string]string{"c0": "web-v2", "c1": "web-v2", "c2": "web-v2"}; !maps.Equal(w.primary(), want) || w.status.Phase != delivery.Succeeded {
		t.Errorf("%v: %s", w.primary(), render(w.status))
	}
}

func TestAQuickSyncDropsWhatAnEarlierReleaseHasLeft(t *testing.T) {
	w := newWorld(2, sync)
	left := w.release.Current.Clone()
	left[delivery.Primary].Clusters["c0"] = delivery.Part{Revision: v1, Traffic: 80, Routed: true}
	left[delivery.Canary] = delivery.Variant{Suffix: "canary", Clusters: map[string]delivery.Part{"c0": {Revision: v2, Replicas: map[string]int32{"Deployment/web": 1}, Traffic: 20, Routed: true}}}
	w.release.Current = left
	w.clusters["c0"].applied.set = left.Clone()
	w.carry()
	w.next()
	if got := w.status.Set.Shares("c0"); got[delivery.Canary] != 0 || got[delivery.Primary] != 100 {
		t.Errorf("the shares are %v", got)
	}
	w.pass(25 * time.Second)
	if _, has := w.status.Set.Part(delivery.Canary, "c0"); !has {
		t.Errorf("the canary is gone before it is drained")
	}
	w.run(t, time.Minute, nil)
	if _, has := w.status.Set[delivery.Canary]; has || w.status.Phase != delivery.Succeeded || w.status.Message != "released in all targets" {
		t.Errorf("%s", render(w.status))
	}
}

func TestASuccessSaysWhatItHasLeftOut(t *testing.T) {
	stage := sync
	stage.Failure.OnUnreachable = delivery.Skip
	w := newWorld(2, stage)
	w.clusters["c1"].silent = true
	w.run(t, time.Minute, nil)
	if want := `released, but for cluster "c1": cluster "c1" does not answer: it follows by itself when it is back`; w.status.Phase != delivery.Succeeded || w.status.Message != want {
		t.Errorf("%s: %s", w.status.Phase, w.status.Message)
	}
}

func TestATimeoutEndsWhatIsUnderWay(t *testing.T) {
	stage := sync
	stage.Timeout = time.Minute
	w := newWorld(2, stage)
	w.release.Rollback.Disabled = true
	w.clusters["c1"].broken["web-v2"] = true
	w.run(t, 2*time.Minute, nil)
	want := map[string]delivery.Phase{"c0": delivery.Succeeded, "c1": delivery.Failed}
	if got := phases(w.stage("sync")); !maps.Equal(got, want) || w.status.Message != "stage sync: it has not ended within 1m0s" {
		t.Errorf("%v: %s", got, w.status.Message)
	}
}

// Rule 1: from v1 to v2 and back before the cluster has seen v2. What it said of v1 before is about what it had then.
func TestAnOldReportDoesNotProveAReturn(t *testing.T) {
	w := newWorld(1, sync)
	w.next()
	stale := w.clusters["c0"].heard
	w.orders.Rollback = "jane"
	w.now = w.now.Add(time.Second)
	w.clusters["c0"].heard = stale
	w.next()
	if got := phases(w.stage("rollback"))["c0"]; got != delivery.Running {
		t.Fatalf("the rollback is %s by a report from before: %s", got, render(w.status))
	}
	w.run(t, time.Minute, nil)
	if w.status.Phase != delivery.Cancelled || w.status.RolledBack != delivery.Succeeded || w.primary()["c0"] != "web-v1" {
		t.Errorf("%s", render(w.status))
	}
}

// Rule 2.
func TestTargetsAreResolvedOnce(t *testing.T) {
	w := newWorld(3, delivery.Stage{ID: "first", Name: delivery.StagePrimaryRollout, Targets: []string{"eu"}}, delivery.Stage{ID: "wait", Name: delivery.StageWait, Wait: time.Minute},
		delivery.Stage{ID: "second", Name: delivery.StageSync})
	eu := map[string]string{"region": "eu"}
	w.release.Targets = []delivery.Target{{Name: "eu", Selector: &metav1.LabelSelector{MatchLabels: eu}}}
	label := func() {
		for _, c := range w.clusters {
			c.heard.Labels = eu
		}
	}
	label()
	w.next()
	w.until(t, "it waits", time.Minute, func() bool { return w.stage("wait").Phase == delivery.Running })
	// One joins, one is relabelled, one leaves.
	w.clusters["c3"] = &actual{ready: map[string]time.Time{}, applied: told{set: delivery.Set{}}}
	w.carry()
	w.clusters["c3"].heard.Labels = eu
	w.clusters["c0"].heard.Labels = map[string]string{"region": "us"}
	delete(w.clusters, "c1")
	w.run(t, 10*time.Minute, nil)
	want := map[string]delivery.Phase{"c0": delivery.Succeeded, "c1": delivery.Skipped, "c2": delivery.Succeeded}
	if got := phases(w.stage("second")); !maps.Equal(got, want) || w.status.Phase != delivery.Succeeded {
		t.Errorf("%v, want %v: %s", got, want, render(w.status))
	}
	if message := w.stage("second").Targets[1].Message; message != `cluster "c1" has left` {
		t.Errorf("it says %q", message)
	}
	if w.primary()["c3"] != "" {
		t.Errorf("what has joined runs %q: it waits for the next release", w.primary()["c3"])
	}
}

// Rule 3: a dead target is shown as itself within 10 s, costs the others nothing, and does what the stage says.
func TestWhatADeadTargetMeans(t *testing.T) {
	for name, test := range map[string]struct {
		failure delivery.Failure
		back    time.Duration // it answers again after that
		phase   delivery.Phase
		target  delivery.Phase
		took    time.Duration // at most
		message string
	}{
		"it is waited for":                          {failure: delivery.Failure{OnUnreachable: delivery.Wait}, back: 2 * time.Minute, phase: delivery.Succeeded, target: delivery.Succeeded, took: 3 * time.Minute},
		"that is what happens by itself":            {back: 2 * time.Minute, phase: delivery.Succeeded, target: delivery.Succeeded, took: 3 * time.Minute},
		"but not for ever":                          {phase: delivery.Failed, target: delivery.Failed, took: 12 * time.Minute, message: `no progress within 10m0s: cluster "c1" does not answer`},
		"it is skipped":                             {failure: delivery.Failure{OnUnreachable: delivery.Skip}, phase: delivery.Succeeded, target: delivery.Skipped, took: time.Minute, message: "it follows by itself"},
		"it has failed":                             {failure: delivery.Failure{OnUnreachable: delivery.Fail}, phase: delivery.Failed, target: delivery.Failed, took: time.Minute, message: "does not answer"},
		"it has failed, and one may":                {failure: delivery.Failure{OnUnreachable: delivery.Fail, MaxFailures: 1}, phase: delivery.Succeeded, target: delivery.Failed, took: time.Minute, message: "it follows by itself"},
		"after as long as the stage says, not 30 s": {failure: delivery.Failure{OnUnreachable: delivery.Skip, After: 2 * time.Minute}, back: time.Minute, phase: delivery.Succeeded, target: delivery.Succeeded, took: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			stage := sync
			stage.Failure = test.failure
			w := newWorld(3, stage)
			w.release.Rollback.Disabled = true
			w.clusters["c1"].silent = true
			w.next()
			w.pass(10 * time.Second)
			of := w.stage("sync")
			if got := of.Targets[1]; got.Message != `cluster "c1" does not answer` {
				t.Errorf("after 10 s it is %s: %q", got.Phase, got.Message)
			}
			if of.Targets[0].Phase != delivery.Succeeded || of.Targets[2].Phase != delivery.Succeeded {
				t.Errorf("the others are kept waiting: %v", phases(of))
			}
			w.run(t, test.took, func() {
				if test.back > 0 && w.now.Sub(t0) >= test.back {
					w.clusters["c1"].silent = false
				}
			})
			got := w.stage("sync").Targets[1]
			if w.status.Phase != test.phase || got.Phase != test.target || !strings.Contains(got.Message, test.message) {
				t.Errorf("it ends as %s, the target as %s: %s", w.status.Phase, got.Phase, got.Message)
			}
			// Once it is back, it has what the release has left.
			w.clusters["c1"].silent = false
			w.carry()
			if set := w.status.Set; w.clusters["c1"].applied.set.Differs(set, "c1") {
				t.Errorf("back again, it runs %v", w.primary()["c1"])
			}
		})
	}
}

func TestADeadTargetTakesNobodysTurn(t *testing.T) {
	one := intstr.FromInt32(1)
	w := newWorld(4, delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: &one}}})
	w.next()
	w.clusters["c0"].silent = true
	w.until(t, "the others are done", 15*time.Second, func() bool {
		p := phases(w.stage("roll"))
		return p["c1"] == delivery.Succeeded && p["c2"] == delivery.Succeeded && p["c3"] == delivery.Succeeded
	})
	if got := phases(w.stage("roll"))["c0"]; got != delivery.Running {
		t.Errorf("the dead one is %s", got)
	}
}

// A silent cluster of a later wave is not given up, and not told anything, before its wave has begun.
func TestADeadTargetOfALaterWaveIsNotTold(t *testing.T) {
	one := intstr.FromInt32(1)
	w := newWorld(2, delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: &one}, {}}, Failure: delivery.Failure{OnUnreachable: delivery.Skip}})
	w.clusters["c0"].broken["web-v2"], w.clusters["c1"].silent = true, true
	w.next()
	w.pass(2 * time.Minute)
	if got := w.stage("roll").Targets[1]; got.Phase != delivery.NotStarted || w.status.Edits["c1"] > 0 {
		t.Fatalf("it is %s: %s", got.Phase, render(w.status))
	}
	w.clusters["c0"].broken = map[string]bool{}
	w.run(t, 2*time.Minute, nil)
	if got := phases(w.stage("roll")); got["c1"] != delivery.Skipped || w.status.Phase != delivery.Succeeded {
		t.Errorf("%v: %s", got, render(w.status))
	}
}

func TestAFailedTargetCutsNobodyOff(t *testing.T) {
	two := intstr.FromInt32(2)
	w := newWorld(4, delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout, Waves: []delivery.Wave{{MaxConcurrency: &two}, {}}})
	w.release.MinReady = 20 * time.Second
	w.clusters["c0"].refused["web-v2"] = true
	w.next()
	w.until(t, "one has failed", time.Minute, func() bool { return phases(w.stage("roll"))["c0"] == delivery.Failed })
	if got := phases(w.stage("roll"))["c1"]; got != delivery.Running {
		t.Fatalf("the other one is %s", got)
	}
	w.until(t, "it is rolled back", time.Minute, func() bool { return w.status.Phase == delivery.RollingBack })
	want := map[string]delivery.Phase{"c0": delivery.Failed, "c1": delivery.Succeeded, "c2": delivery.NotStarted, "c3": delivery.NotStarted}
	if got := phases(w.stage("roll")); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if message := w.stage("roll").Message; message != `cluster "c0" refuses the primary of web-v2: denied by policy` {
		t.Errorf("it says %q", message)
	}
}

func TestATargetThatGetsNowhereFails(t *testing.T) {
	w := newWorld(2, sync)
	w.release.Rollback.Disabled = true
	w.clusters["c1"].broken["web-v2"] = true
	// It gets on for a while: that counts.
	w.run(t, 20*time.Minute, func() {
		if c := w.clusters["c1"]; w.now.Sub(t0) < 5*time.Minute {
			report := c.heard.Variants[delivery.Primary]
			report.Progress = int64(w.now.Sub(t0) / time.Minute)
			c.heard.Variants[delivery.Primary] = report
			w.next()
		}
	})
	if took := w.status.End.Sub(t0); took < 14*time.Minute || took > 15*time.Minute {
		t.Errorf("it took %s: progress stopped after 4 minutes, and the deadline is 10", took)
	}
	if got := phases(w.stage("sync")); got["c0"] != delivery.Succeeded || got["c1"] != delivery.Failed {
		t.Errorf("%v", got)
	}
}

// Rule 4.
func TestACanaryIsOfAllClustersTogether(t *testing.T) {
	for name, test := range map[string]struct {
		each bool
		want int
	}{"together": {want: 2}, "in each": {each: true, want: 5}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(5, delivery.Stage{ID: "canary", Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: intstr.FromString("10%"), PerCluster: test.each}})
			w.run(t, time.Minute, nil)
			pods := 0
			for _, part := range w.status.Set[delivery.Canary].Clusters {
				pods += int(part.Replicas["Deployment/web"])
			}
			if pods != test.want || len(w.status.Set[delivery.Canary].Clusters) != test.want || w.status.Phase != delivery.Succeeded {
				t.Errorf("%d pods in %d clusters: %s", pods, len(w.status.Set[delivery.Canary].Clusters), render(w.status))
			}
			ready := 0
			for _, target := range w.stage("canary").Targets {
				ready += int(target.Pods)
			}
			if ready != test.want {
				t.Errorf("%d of them are told to be ready: %s", ready, render(w.status))
			}
		})
	}
}

func TestReadyPodsOfACopyAreThoseThatAreWantedAndProven(t *testing.T) {
	for name, test := range map[string]struct {
		report func(*delivery.Report)
		want   int32
	}{
		"as reported":                          {report: func(*delivery.Report) {}, want: 1},
		"no more than are wanted":              {report: func(r *delivery.Report) { r.Pods = 99 }, want: 1},
		"no fewer than none":                   {report: func(r *delivery.Report) { r.Pods = -1 }},
		"none of what is not the new revision": {report: func(r *delivery.Report) { r.Fingerprint = "old" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, delivery.Stage{ID: "canary", Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: intstr.FromInt32(1)}})
			for range 60 {
				w.now = w.now.Add(time.Second)
				w.carry()
				if report, there := w.clusters["c0"].heard.Variants[delivery.Canary]; there {
					test.report(&report)
					w.clusters["c0"].heard.Variants[delivery.Canary] = report
				}
				w.next()
			}
			if got := w.stage("canary").Targets[0].Pods; got != test.want {
				t.Errorf("%d pods are ready, want %d: %s", got, test.want, render(w.status))
			}
		})
	}
}

func canary(traffic int32) []delivery.Stage {
	return []delivery.Stage{
		{ID: "canary", Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: intstr.FromInt32(1), PerCluster: true}},
		{ID: "route", Name: delivery.StageTrafficRouting, Traffic: map[string]int32{delivery.Canary: traffic}},
	}
}

// Rule 6.
func TestTrafficWaitsForEndpointsAndPodsForTheDrain(t *testing.T) {
	w := newWorld(2, append(canary(20), delivery.Stage{ID: "clean", Name: delivery.StageCanaryClean})...)
	hidden := true
	hide := func() { // c1's canary runs, but no endpoint is ready
		report := w.clusters["c1"].heard.Variants[delivery.Canary]
		if report.Endpoints = 1; hidden {
			report.Endpoints = 0
		}
		if _, there := w.clusters["c1"].heard.Variants[delivery.Canary]; there {
			w.clusters["c1"].heard.Variants[delivery.Canary] = report
		}
	}
	step := func() {
		w.now = w.now.Add(time.Second)
		w.carry()
		hide()
		w.next()
	}
	for range 60 {
		step()
	}
	if got := w.status.Set.Shares("c0")[delivery.Canary]; got != 20 {
		t.Errorf("c0 sends %d %% to what is ready", got)
	}
	if got := w.status.Set.Shares("c1")[delivery.Canary]; got != 0 {
		t.Errorf("c1 sends %d %% to what is not", got)
	}
	if message := w.stage("route").Targets[1].Message; !strings.Contains(message, `no endpoint of the canary is ready in cluster "c1"`) {
		t.Errorf("it says %q", message)
	}
	hidden = false
	var lost time.Time
	for w.status.Phase == delivery.Running && w.now.Before(t0.Add(time.Hour)) {
		step()
		report, there := w.look("c0").Variants[delivery.Canary]
		if w.stage("clean").Phase == delivery.NotStarted {
			continue
		}
		if there && report.Weight == 0 && lost.IsZero() {
			lost = w.now
		}
		if !there && (lost.IsZero() || w.now.Sub(lost) < 30*time.Second) {
			t.Fatalf("the canary went %s after its traffic", w.now.Sub(lost))
		}
	}
	if w.status.Phase != delivery.Succeeded || len(w.status.Set) != 1 || lost.IsZero() {
		t.Errorf("%s", render(w.status))
	}
}

// Rule 6. Where a copy has come to nothing, and an earlier stage bears that, the cluster sends requests to what it has, and others send so much more.
func TestAClusterWhoseCanaryHasFailedSendsItNothing(t *testing.T) {
	stages := canary(20)
	stages[0].Failure.MaxFailures = 1
	w := newWorld(2, append(stages, delivery.Stage{ID: "wait", Name: delivery.StageWait, Wait: time.Minute})...)
	w.clusters["c1"].refused[w.release.Revision.Name], w.clusters["c1"].broken[w.release.Revision.Name] = true, true
	w.until(t, "traffic is routed", 10*time.Minute, func() bool { return w.stage("wait").Phase == delivery.Running })
	if got := w.stage("canary").Targets[1].Phase; got != delivery.Failed {
		t.Fatalf("the canary of c1 is %s", got)
	}
	if c0, c1 := w.status.Set.Shares("c0")[delivery.Canary], w.status.Set.Shares("c1")[delivery.Canary]; c0 != 40 || c1 != 0 {
		t.Errorf("c0 sends %d %% to the canary and c1, which has none, %d %%: want 20 %% together", c0, c1)
	}
}

// A cluster where fewer pods serve has fewer requests, so what is there counts, and not what is to be.
func TestSharesGoByThePodsThatAreReady(t *testing.T) {
	stages := canary(20)
	stages[0].Targets = []string{"c0"}
	w := newWorld(2, append(stages, delivery.Stage{ID: "wait", Name: delivery.StageWait, Wait: time.Minute})...)
	w.clusters["c1"].replicas, w.clusters["c1"].heard.Wanted = 9, map[string]int32{"Deployment/web": 9}
	w.until(t, "traffic is routed", 10*time.Minute, func() bool { return w.stage("wait").Phase == delivery.Running })
	// Of each cluster one pod is ready in this world.
	if c0, c1 := w.status.Set.Shares("c0")[delivery.Canary], w.status.Set.Shares("c1")[delivery.Canary]; c0 != 40 || c1 != 0 {
		t.Errorf("c0 sends %d %% to the canary, and c1 %d %%", c0, c1)
	}
}

// Rule 7: how many pods the primary has is nobody's business here.
func TestThePrimaryKeepsTheReplicasThatItsAutoscalerGivesIt(t *testing.T) {
	w := newWorld(2, append(canary(20), delivery.Stage{ID: "roll", Name: delivery.StagePrimaryRollout}, delivery.Stage{ID: "clean", Name: delivery.StageCanaryClean})...)
	w.run(t, 10*time.Minute, func() {
		for _, c := range w.clusters {
			c.replicas = c.replicas%7 + 1
		}
		for cluster, part := range w.status.Set[delivery.Primary].Clusters {
			if len(part.Replicas) > 0 {
				t.Fatalf("the primary of %s is to have %v", cluster, part.Replicas)
			}
		}
		for cluster, part := range w.status.Set[delivery.Canary].Clusters {
			if part.Replicas["Deployment/web"] != 1 {
				t.Fatalf("the canary of %s follows the primary: %v", cluster, part.Replicas)
			}
		}
	})
	if w.status.Phase != delivery.Succeeded {
		t.Errorf("%s", render(w.status))
	}
}
