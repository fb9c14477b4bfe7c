package engine

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

func randomWaves(r *rand.Rand) []delivery.Wave {
	out := []delivery.Wave{}
	for range 1 + r.IntN(3) {
		size := intstr.FromInt32(1 + r.Int32N(3))
		if r.IntN(2) == 0 {
			size = intstr.FromString(fmt.Sprintf("%d%%", 10+r.IntN(60)))
		}
		out = append(out, delivery.Wave{MaxConcurrency: &size})
	}
	return out
}

// rollout is the stage of random worlds that goes in waves.
const rollout = "rollout"

// randomWorld is a pipeline over clusters that do and say everything late, and so do the people who are asked.
func randomWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 7))
	replicas := intstr.FromString(fmt.Sprintf("%d%%", 5+r.IntN(60)))
	all := []delivery.Stage{{Name: delivery.StageCanaryRollout, Copy: &delivery.CopyOptions{Replicas: replicas, PerCluster: r.IntN(2) == 0}}}
	shares, baseline := map[string]int32{delivery.Canary: 5 + r.Int32N(40)}, r.IntN(2) == 0
	if baseline {
		all = append(all, delivery.Stage{Name: delivery.StageBaselineRollout, Copy: &delivery.CopyOptions{PerCluster: r.IntN(2) == 0}})
		shares[delivery.Baseline] = 5 + r.Int32N(40)
	}
	sometimes := func(stage delivery.Stage) {
		if r.IntN(2) == 0 {
			all = append(all, stage)
		}
	}
	sometimes(delivery.Stage{Name: delivery.StageApproval, Approval: &delivery.Approval{Minimum: 1 + r.Int32N(2)}})
	all = append(all, delivery.Stage{Name: delivery.StageTrafficRouting, Traffic: shares})
	sometimes(delivery.Stage{Name: delivery.StageAnalysis, Analysis: &delivery.Analysis{Duration: time.Duration(10+r.IntN(50)) * time.Second, Metrics: []delivery.Metric{
		{Name: "errors", Max: ptr.To(0.5), Interval: time.Duration(1+r.IntN(20)) * time.Second, FailureLimit: 1},
		{Name: "smoke", Interval: time.Duration(r.IntN(2)*15) * time.Second, Job: &delivery.JobOptions{Timeout: time.Minute}},
	}}})
	sometimes(delivery.Stage{Name: delivery.StageScript, UndoesScript: r.IntN(2) == 0})
	sometimes(delivery.Stage{Name: delivery.StageWait, Wait: time.Duration(1+r.IntN(60)) * time.Second})
	all = append(all, delivery.Stage{ID: rollout, Name: delivery.StagePrimaryRollout, Waves: randomWaves(r)},
		delivery.Stage{Name: delivery.StageTrafficRouting, Traffic: map[string]int32{delivery.Primary: 100}})
	sometimes(delivery.Stage{Name: delivery.StageApproval})
	if baseline {
		all = append(all, delivery.Stage{Name: delivery.StageBaselineClean})
	}
	w := newWorld(2+r.IntN(6), append(all, delivery.Stage{Name: delivery.StageCanaryClean})...)
	w.random, w.people, w.release.MinReady = r, newPeople(seed), time.Duration(r.IntN(5))*time.Second
	for _, c := range w.sorted() {
		c.replicas = 1 + r.Int32N(9)
		c.heard.Wanted = map[string]int32{"Deployment/web": c.replicas}
	}
	return w
}

// holds reports whether a cluster really runs v2 as its primary, and has been ready for long enough.
func (w *world) holds(cluster string) bool {
	c := w.clusters[cluster]
	part, has := c.applied.set.Part(delivery.Primary, cluster)
	at, known := c.ready[delivery.Primary+part.Fingerprint()]
	return has && part.Revision == v2 && known && !at.Add(w.release.MinReady).After(w.now)
}
