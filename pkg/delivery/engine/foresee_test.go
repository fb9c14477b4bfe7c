package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// lines is a set as far as it says who runs what, and who gets which requests.
func lines(set delivery.Set) string {
	out := ""
	for _, name := range set.Names() {
		for _, cluster := range slices.Sorted(maps.Keys(set[name].Clusters)) {
			part := set[name].Clusters[cluster]
			out += fmt.Sprintf("%s in %s: %s %v %d%%\n", name, cluster, part.Revision.Name, part.Replicas, part.Traffic)
		}
	}
	return out
}

// What is foreseen is what comes, where every cluster does what it is told.
func TestWhatIsForeseenComes(t *testing.T) {
	canary := func(replicas string, each bool, targets ...string) delivery.Stage {
		return delivery.Stage{Name: delivery.StageCanaryRollout, Targets: targets, Copy: &delivery.CopyOptions{Replicas: intstr.Parse(replicas), PerCluster: each, Service: true}}
	}
	route := func(share int32, targets ...string) delivery.Stage {
		return delivery.Stage{Name: delivery.StageTrafficRouting, Targets: targets, Traffic: map[string]int32{delivery.Canary: share}}
	}
	primary := func(targets ...string) delivery.Stage {
		return delivery.Stage{Name: delivery.StagePrimaryRollout, Targets: targets}
	}
	clean := delivery.Stage{Name: delivery.StageCanaryClean}
	skipped := route(90)
	skipped.SkipOn.Prefixes = []string{"docs:"}
	baseline := delivery.Stage{Name: delivery.StageBaselineRollout, Copy: &delivery.CopyOptions{}}
	shared := delivery.Stage{Name: delivery.StageTrafficRouting, Traffic: map[string]int32{delivery.Canary: 20, delivery.Baseline: 20}}
	for name, stages := range map[string][]delivery.Stage{
		"a canary in each cluster":           {canary("1", true), route(20), route(50), primary(), route(0), clean},
		"a canary in some of them":           {canary("10%", false), route(10), primary(), route(0), clean},
		"a canary in one target":             {canary("1", true, "c1"), route(20, "c1"), primary("c0"), primary(), route(0), clean},
		"a baseline beside it":               {canary("1", true), baseline, shared, {Name: delivery.StageSync}},
		"a stage that is skipped":            {canary("1", true), skipped, route(30), primary()},
		"a cluster that the release leaves":  {canary("1", true), route(30), {Name: delivery.StageSync}},
		"what comes only with the release":   {primary("c0"), canary("1", true, "c0"), route(30, "c0"), primary(), route(0, "c0"), clean},
		"a canary that goes with its share":  {canary("1", true), route(30), clean, primary()},
		"a share that nothing is there for":  {route(0), primary()},
		"nothing but the last stage of some": {{Name: delivery.StageSync, Targets: []string{"c0"}}, {Name: delivery.StageSync}},
	} {
		t.Run(name, func(t *testing.T) {
			var paused []delivery.Stage
			for i, stage := range stages {
				stage.ID = fmt.Sprint("s", i)
				paused = append(paused, stage, delivery.Stage{ID: "after-" + stage.ID, Name: delivery.StageWait, Wait: 10 * time.Second})
			}
			w, _ := dropping(5, paused...)
			w.release.Commit.Message = "docs: nothing else"
			for name, c := range w.clusters {
				c.heard.Unroutable = "nobody has made the route of " + name + " yet"
			}
			begun := Next(w.release, delivery.Status{}, w.observed(), w.now).Status
			before := lines(w.release.Current) + lines(begun.Set)
			want := map[string]string{}
			for _, step := range Foresee(w.release, begun, w.observed()) {
				want[step.Stage.ID] = lines(step.Set)
			}
			if after := lines(w.release.Current) + lines(begun.Set); after != before {
				t.Errorf("to foresee changes what is: %s", after)
			}
			for _, c := range w.clusters {
				c.heard.Unroutable = ""
			}
			seen := map[string]bool{}
			w.run(t, 20*time.Minute, func() {
				for _, of := range w.status.Stages {
					if of.Name != delivery.StageWait || of.Phase != delivery.Running || seen[of.ID] {
						continue
					}
					seen[of.ID] = true
					if got := lines(w.status.Set); got != want[of.ID] {
						t.Errorf("%s there is\n%sforeseen was\n%s", of.ID, got, want[of.ID])
					}
				}
			})
			if w.status.Phase != delivery.Succeeded || len(seen) != len(stages) {
				t.Errorf("%s, seen %v: %s", w.status.Phase, seen, render(w.status))
			}
		})
	}
}

// What cannot be told yet ends what is foreseen, and refuses nothing.
func TestWhatCannotBeForeseenIsLeftOut(t *testing.T) {
	w := newWorld(2,
		delivery.Stage{ID: "first", Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: intstr.FromInt32(1), PerCluster: true}},
		delivery.Stage{ID: "shares", Name: delivery.StageTrafficRouting, Traffic: map[string]int32{delivery.Baseline: 10}},
		delivery.Stage{ID: "last", Name: delivery.StagePrimaryRollout},
	)
	var got []string
	for _, step := range Foresee(w.release, Next(w.release, delivery.Status{}, w.observed(), w.now).Status, w.observed()) {
		got = append(got, step.Stage.ID)
	}
	if !slices.Equal(got, []string{"first"}) {
		t.Errorf("foreseen are %v: there is no baseline", got)
	}
}
