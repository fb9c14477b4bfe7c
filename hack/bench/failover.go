package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/hack/bench/simulated"
	"github.com/manifold-dev/manifold/hack/stock/process"
	"github.com/manifold-dev/manifold/pkg/placement"
)

const (
	// failoverGrace and failoverToleration are how long the lost cluster may be silent, and how long workloads stay then. Both are short: only
	// what follows is measured.
	failoverGrace      = 12 * time.Second
	failoverToleration = 5 * time.Second
	// failoverGoal is how long it may take, in seconds, until all decisions are written.
	failoverGoal = 20
	// failoverTimeout bounds each wait.
	failoverTimeout = 10 * time.Minute
)

// failoverSizes are those of what -failover makes.
type failoverSizes struct {
	Clusters    int `json:"clusters"`
	Deployments int `json:"deployments"`
	// Namespaces is over how many namespaces the Deployments are. Those of one are in one cluster, as far as they fit.
	Namespaces int `json:"namespaces"`
}

// failoverReport is everything measured with -failover. Times are in seconds.
type failoverReport struct {
	Time  time.Time     `json:"time"`
	Sizes failoverSizes `json:"sizes"`
	// Lost is how many Deployments were on the cluster that was lost.
	Lost int `json:"lost"`
	// Created is how long it took until all were created and ran.
	Created float64 `json:"created"`
	// First and Last are how long after their toleration had ended the first and the last decision was written.
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	Goal  float64 `json:"goal"`
	// CPU is what the logical cluster took from the silence to the last decision, Memory its resident memory then, in MiB.
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memoryMiB"`
	// Writes, by verb and resource, are the calls of the logical cluster's API for each Deployment in that time.
	Writes map[string]float64 `json:"writes"`
}

// runFailover measures how long it takes to place everything anew that was on one of many simulated clusters when that falls silent.
func runFailover(ctx context.Context, o options, root, dir string) (err error) {
	f := &failover{sizes: o.failoverSizes, decisions: map[string]placement.Decision{}, moved: make(chan struct{}, 1)}
	f.fleet, err = startFleet(ctx, fleetOptions{
		binary: filepath.Join(root, o.manifold), dir: filepath.Join(dir, "failover"),
		clusters: o.failoverSizes.Clusters, cores: int64(max(100, o.failoverSizes.Deployments/5)),
		args: []string{"--cluster-grace-period", failoverGrace.String(), "--cluster-toleration", failoverToleration.String()},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	report, err := f.run(ctx)
	if err != nil {
		return err
	}
	report.print(os.Stdout)
	return o.write(report)
}

// failover is one run.
type failover struct {
	*fleet
	sizes failoverSizes
	lost  *simulated.Cluster

	mu sync.Mutex
	// decisions are those of the Deployments that run, by name; first and last are when one of those of the lost cluster was written first
	// and last.
	decisions   map[string]placement.Decision
	running     int
	onLost      int
	first, last time.Time
	moved       chan struct{} // holds one when something has changed
}

func (f *failover) run(ctx context.Context) (*failoverReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	if err := f.observe(ctx, &watching); err != nil {
		return nil, err
	}
	report := &failoverReport{Time: time.Now().UTC().Truncate(time.Second), Sizes: f.sizes, Goal: failoverGoal}
	fmt.Fprintf(os.Stderr, "bench: create %d Deployments\n", f.sizes.Deployments)
	start := time.Now()
	if err := f.create(ctx); err != nil {
		return nil, err
	}
	if err := f.until(ctx, "all Deployments run", func() bool { return f.running == f.sizes.Deployments }); err != nil {
		return nil, err
	}
	report.Created = time.Since(start).Seconds()
	(&site{machine: &machine{hub: f.hub()}}).calm(ctx)
	return report, f.lose(ctx, report)
}

// observe watches all Deployments.
func (f *failover) observe(ctx context.Context, watching *sync.WaitGroup) error {
	informer := cache.NewSharedInformer(
		cache.NewListWatchFromClient(f.client.AppsV1().RESTClient(), "deployments", metav1.NamespaceAll, fields.Everything()), &appsv1.Deployment{}, 0)
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.notice(object.(*appsv1.Deployment)) },
		UpdateFunc: func(_, object any) { f.notice(object.(*appsv1.Deployment)) },
	})
	if err != nil {
		return err
	}
	watching.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// notice takes note of where a Deployment is once it runs, and of its leaving the lost cluster.
func (f *failover) notice(d *appsv1.Deployment) {
	now := time.Now()
	decision, err := placement.ParseDecision(d.Annotations[v1alpha1.AnnotationPlacement])
	if err != nil {
		return
	}
	name := d.Namespace + "/" + d.Name
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.decisions[name]
	if !known && (d.Status.ReadyReplicas == 0 || len(decision) == 0) {
		return
	}
	if !known {
		f.running++
	}
	f.decisions[name] = decision
	if f.lost != nil {
		_, was := last[f.lost.Name()]
		if _, is := decision[f.lost.Name()]; was && !is {
			f.onLost--
			f.last = now
			if f.first.IsZero() {
				f.first = now
			}
		}
	}
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// until waits until enough, which is called under the lock, says so.
func (f *failover) until(ctx context.Context, what string, enough func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, failoverTimeout)
	defer cancel()
	for {
		f.mu.Lock()
		done := enough()
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			return fmt.Errorf("wait until %s: %d run, %d are on the lost cluster: %w", what, f.running, f.onLost, ctx.Err())
		case <-f.moved:
		}
	}
}

// create makes the namespaces and the Deployments.
func (f *failover) create(ctx context.Context) error {
	namespace := func(i int) string { return fmt.Sprintf("failover-%d", i%f.sizes.Namespaces) }
	for i := range f.sizes.Namespaces {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}}
		if _, err := f.client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %q: %w", namespace(i), err)
		}
	}
	var group errgroup.Group
	group.SetLimit(scaleWorkers)
	for i := range f.sizes.Deployments {
		group.Go(func() error {
			_, err := f.client.AppsV1().Deployments(namespace(i)).Create(ctx, deployment(fmt.Sprintf("app-%05d", i), 1), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// lose silences the cluster that has most, and waits until nothing is decided to be there.
func (f *failover) lose(ctx context.Context, report *failoverReport) error {
	before, err := process.UsageOf(f.server.Process().PID())
	if err != nil {
		return err
	}
	hub := f.hub()
	wrote, err := hub.requests(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	for _, end := range f.ends {
		count := 0
		for _, decision := range f.decisions {
			if _, there := decision[end.Name()]; there {
				count++
			}
		}
		if count > f.onLost {
			f.lost, f.onLost = end, count
		}
	}
	report.Lost = f.onLost
	f.mu.Unlock()
	fmt.Fprintf(os.Stderr, "bench: lose %s, which has %d of them\n", f.lost.Name(), report.Lost)
	f.lost.Silence()
	wait, cancel := context.WithTimeout(ctx, failoverTimeout)
	defer cancel()
	unknown, err := f.condition(wait, f.lost.Name(), metav1.ConditionUnknown)
	if err != nil {
		return fmt.Errorf("wait until %s counts as unreachable: %w", f.lost.Name(), err)
	}
	if err := f.until(ctx, "everything has left "+f.lost.Name(), func() bool { return f.onLost == 0 }); err != nil {
		return err
	}
	ended := unknown.LastTransitionTime.Add(failoverToleration) // whole seconds, cut: what is measured is rather too long
	report.First, report.Last = f.first.Sub(ended).Seconds(), f.last.Sub(ended).Seconds()
	after, err := process.UsageOf(f.server.Process().PID())
	if err != nil {
		return err
	}
	writes, err := hub.requests(ctx)
	if err != nil {
		return err
	}
	report.Writes = since(writes.api, wrote.api, report.Lost)
	report.CPU, report.Memory = (after.CPU - before.CPU).Seconds(), float64(after.RSS)/(1<<20)
	return nil
}

func (r *failoverReport) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "figure\tvalue\tgoal\tmet\t\n")
	row := func(name string, value, goal float64, unit string) {
		f := figure{Through: value, Goal: goal}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", name, number(value, unit), number(goal, ""), f.met())
	}
	row(fmt.Sprintf("create %d Deployments until they run", r.Sizes.Deployments), r.Created, 0, "s")
	row(fmt.Sprintf("lose one of %d clusters with %d of them: first decision", r.Sizes.Clusters, r.Lost), r.First, 0, "s")
	row("last decision", r.Last, r.Goal, "s")
	row("CPU of the logical cluster from the silence on", r.CPU, 0, "s")
	row("resident memory of the logical cluster", r.Memory, 0, "MiB")
	for _, call := range slices.Sorted(maps.Keys(r.Writes)) {
		if r.Writes[call] >= 0.01 {
			row(call+" for each Deployment", r.Writes[call], 0, "")
		}
	}
	table.Flush()
}
