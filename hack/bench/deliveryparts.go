package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// What delivery may take.
const (
	// waveOverhead is how many seconds a wave may take longer than its clusters.
	waveOverhead = 1
	// targetWrites is how many writes to APIs a release may make for each target, to the logical cluster and to the target's.
	targetWrites = 4
	// restCPU is what applications may add to the part of a core that the logical cluster takes while nothing happens, in percent.
	restCPU = 1
)

// onFleet has releases measured in a logical cluster of simulated clusters, while they are watched.
func onFleet(ctx context.Context, o fleetOptions, measure func(ctx context.Context, f *fleet, work *workshop, seen *progress) error) (err error) {
	f, err := startFleet(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	work := &workshop{client: f.client, manifold: f.manifold}
	if err := work.createNamespace(ctx); err != nil {
		return err
	}
	return whileWatching(ctx, f.manifold, func(ctx context.Context, seen *progress) error { return measure(ctx, f, work, seen) })
}

// measureWaves releases one application to many simulated clusters in waves.
func measureWaves(ctx context.Context, sizes deliverySizes, binary, dir string, report *deliveryReport) error {
	o := fleetOptions{binary: binary, dir: filepath.Join(dir, "waves"), clusters: sizes.Targets, cores: 100, rollout: sizes.Rollout}
	return onFleet(ctx, o, func(ctx context.Context, f *fleet, work *workshop, seen *progress) error {
		return releaseInWaves(ctx, sizes, f, work, seen, report)
	})
}

func releaseInWaves(ctx context.Context, sizes deliverySizes, f *fleet, work *workshop, seen *progress, report *deliveryReport) error {
	const id = "primary"
	size := intstr.FromString(fmt.Sprintf("%d%%", int(math.Ceil(100/float64(sizes.Waves)))))
	stage := v1alpha1.Stage{Name: v1alpha1.StagePrimaryRollout, ID: id, Waves: slices.Repeat([]v1alpha1.Wave{{MaxConcurrency: &size}}, sizes.Waves)}
	names := []string{"app"}
	all := []v1alpha1.Target{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}
	fmt.Fprintf(os.Stderr, "bench: release an application to %d clusters\n", sizes.Targets)
	if err := work.create(ctx, names, all, stage); err != nil {
		return err
	}
	if err := seen.released(ctx, names, 1); err != nil {
		return err
	}
	m := &machine{hub: f.hub()}
	(&site{machine: m}).calm(ctx)
	before, err := m.begin(ctx)
	if err != nil {
		return err
	}
	wrote := f.writes()
	fmt.Fprintf(os.Stderr, "bench: release a change of it in %d waves\n", sizes.Waves)
	if err := work.change(ctx, names, 2); err != nil {
		return err
	}
	if err := seen.released(ctx, names, 2); err != nil {
		return err
	}
	(&site{machine: m}).calm(ctx) // what follows, such as summaries, is part of the cost
	after, err := m.end(ctx)
	if err != nil {
		return err
	}
	steps, err := seen.steps(v1alpha1.RevisionName(names[0], 2), id, sizes.Waves)
	if err != nil {
		return err
	}
	overheads := make([]float64, len(steps))
	for i, took := range steps {
		overheads[i] = took - sizes.Rollout.Seconds()
		report.add("s", overheads[i], "one application, %d simulated clusters: wave %d beyond the %s of its clusters", sizes.Targets, i+1, sizes.Rollout)
	}
	report.bound(waveOverhead, "s", slices.Max(overheads), "overhead of a wave, the greatest")
	above := since(after.requests.api, before.requests.api, sizes.Targets)
	below := since(f.writes(), wrote, sizes.Targets)
	report.bound(targetWrites, "", sum(above)+sum(below), "API writes per target")
	report.add("", sum(above), "API writes per target to the logical cluster")
	report.writes("logical cluster", above)
	report.add("", sum(below), "API writes per target to its cluster")
	report.writes("its cluster", below)
	report.add("s", (after.hubCPU - before.hubCPU).Seconds(), "CPU of the logical cluster for the release")
	report.add("%", 100*after.others(before), "part of the machine that other processes took")
	return nil
}

// writes are those to all simulated clusters.
func (f *fleet) writes() map[string]float64 {
	out := map[string]float64{}
	for _, end := range f.ends {
		for call, n := range end.Writes() {
			out[call] += n
		}
	}
	return out
}

// crowdStages are the stages of each application that is released at once with others.
var crowdStages = []v1alpha1.Stage{
	{Name: v1alpha1.StageCanaryRollout, ID: "canary", With: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}},
	{Name: v1alpha1.StagePrimaryRollout, ID: "primary", Waves: []v1alpha1.Wave{{MaxConcurrency: ptr.To(intstr.FromInt32(1))}, {}}},
	{Name: v1alpha1.StageCanaryClean, ID: "clean"},
}

// measureCrowd releases many applications at once on two stock clusters.
func measureCrowd(ctx context.Context, sizes deliverySizes, binary, dir, bin string, report *deliveryReport) (err error) {
	nodes := nodesFor(2 * sizes.Apps)
	clusters, err := stock.StartAll(ctx,
		stock.Options{Name: "east", Dir: filepath.Join(dir, "east"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
		stock.Options{Name: "west", Dir: filepath.Join(dir, "west"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()
	hub, err := startHub(ctx, binary, dir, clusters, &hubFigures{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	config, err := hub.RESTConfig()
	if err != nil {
		return err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	work := &workshop{client: hub.client, manifold: client, replicas: 1}
	if err := work.createNamespace(ctx); err != nil {
		return err
	}
	return whileWatching(ctx, client, func(ctx context.Context, seen *progress) error {
		return releaseAtOnce(ctx, sizes, &machine{clusters: clusters, hub: hub}, work, seen, report)
	})
}

func releaseAtOnce(ctx context.Context, sizes deliverySizes, m *machine, work *workshop, seen *progress, report *deliveryReport) error {
	names := appNames(sizes.Apps)
	fmt.Fprintf(os.Stderr, "bench: create %d applications\n", sizes.Apps)
	if err := work.create(ctx, names, []v1alpha1.Target{{Name: "first", Cluster: "east"}, {Name: "second", Cluster: "west"}}, crowdStages...); err != nil {
		return err
	}
	if err := seen.released(ctx, names, 1); err != nil {
		return err
	}
	(&site{machine: m}).calm(ctx)
	before, err := m.begin(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: release changes of all of them\n")
	if err := work.change(ctx, names, 2); err != nil {
		return err
	}
	if err := seen.released(ctx, names, 2); err != nil {
		return err
	}
	took := time.Since(before.at).Seconds()
	(&site{machine: m}).calm(ctx)
	after, err := m.end(ctx)
	if err != nil {
		return err
	}
	report.add("s", took, "%d applications at once on two stock clusters, until all are released", sizes.Apps)
	var stages []float64
	for _, stage := range crowdStages {
		of := seen.latencies(names, 2, stage.ID)
		stages = append(stages, of...)
		report.add("s", percentile(of, 0.95), "stage %s, 95 %%", stage.Name)
	}
	report.add("s", percentile(stages, 0.5), "all stages, median")
	report.add("s", percentile(stages, 0.95), "all stages, 95 %%")
	cost := after.since(before, sizes.Apps)
	report.add("ms", cost.HubCPU, "CPU of the logical cluster per release")
	report.add("ms", cost.ClusterCPU, "CPU of both clusters per release")
	report.add("", sum(cost.Writes), "API writes per release to the logical cluster, pods and ReplicaSets that it shows included")
	report.writes("logical cluster", cost.Writes)
	report.add("%", 100*after.others(before), "part of the machine that other processes took")
	return measureSight(ctx, work, names, m.clusters[1], report)
}

// percentile is the value that a part of the values does not exceed.
func percentile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(math.Ceil(part*float64(len(sorted))))-1)]
}

// measureRest leaves many released applications alone, and compares that with a logical cluster that has none.
func measureRest(ctx context.Context, sizes deliverySizes, binary, dir string, report *deliveryReport) (err error) {
	f, err := startFleet(ctx, fleetOptions{binary: binary, dir: filepath.Join(dir, "rest"), clusters: 2, cores: int64(max(100, sizes.Idle))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	work := &workshop{client: f.client, manifold: f.manifold}
	if err := work.createNamespace(ctx); err != nil {
		return err
	}
	m := &machine{hub: f.hub()}
	fmt.Fprintf(os.Stderr, "bench: no applications for %s\n", sizes.Rest)
	empty, _, err := m.rest(ctx, sizes.Rest)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: create %d applications\n", sizes.Idle)
	names := appNames(sizes.Idle)
	err = whileWatching(ctx, f.manifold, func(ctx context.Context, seen *progress) error {
		if err := work.create(ctx, names, []v1alpha1.Target{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}); err != nil {
			return err
		}
		return seen.released(ctx, names, 1)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: leave them alone for %s\n", sizes.Rest)
	full, writes, err := m.rest(ctx, sizes.Rest)
	if err != nil {
		return err
	}
	report.add("%", empty, "core of the logical cluster at rest, no applications")
	report.add("%", full, "core of the logical cluster at rest, %d applications on 2 clusters", sizes.Idle)
	report.bound(restCPU, "%", full-empty, "core that the applications take at rest")
	report.bound(0, "", sum(writes), "API writes while the applications rest for %s", sizes.Rest)
	report.writes("logical cluster", writes)
	return nil
}

// rest waits until nothing goes on and all that was written has been looked at once more, and then for some time. It returns what part of a core the
// logical cluster takes then, in percent, and what is written.
func (m *machine) rest(ctx context.Context, long time.Duration) (cpu float64, writes map[string]float64, err error) {
	(&site{machine: m}).calm(ctx)
	if err := pause(ctx, restTime+steps.LookAgain); err != nil {
		return 0, nil, err
	}
	before, err := m.begin(ctx)
	if err != nil {
		return 0, nil, err
	}
	if err := pause(ctx, long); err != nil {
		return 0, nil, err
	}
	after, err := m.end(ctx)
	if err != nil {
		return 0, nil, err
	}
	return 100 * (after.hubCPU - before.hubCPU).Seconds() / after.at.Sub(before.at).Seconds(), since(after.requests.api, before.requests.api, 1), nil
}

func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}
