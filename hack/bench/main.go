// Command bench measures what Manifold costs: the same Deployments are created directly on two stock clusters, and through a logical
// cluster in front of these, by turns within one run. It prints a table and, with -o, writes everything measured as JSON.
//
// Times are those at which watches report an object, so that nothing depends on how often somebody looks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/hack/bench/traffic"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// options are the flags.
type options struct {
	// count is how many Deployments are created at once, seconds how many one by one in every second.
	count, seconds int
	rounds         int
	workers        int
	manifold       string
	directOnly     bool
	output         string
	throughOnly    bool
	// scale measures large objects instead, of these sizes.
	scale bool
	sizes sizes
	// placement measures decisions in memory instead.
	placement bool
	// failover loses one of many simulated clusters instead.
	failover      bool
	failoverSizes failoverSizes
	// drain moves so many Deployments from one stock cluster to another instead.
	drain      bool
	drainCount int
	// storm makes and deletes so many definitions of custom resources instead.
	storm     bool
	stormSize int
	// deletion measures deletions instead.
	deletion bool
	// delivery measures releases instead.
	delivery      bool
	deliverySizes deliverySizes
	// pipelines measures what pipelines cost and how soon they show a change instead.
	pipelines     bool
	pipelineSizes pipelineSizes
	// traffic counts requests that fail meanwhile instead, at the rate, through gateways too, and in the scenarios named, all if none is.
	traffic   bool
	rate      int
	gateway   bool
	scenarios string
}

func main() {
	var o options
	flag.IntVar(&o.count, "count", 300, "Deployments that are created at once")
	flag.IntVar(&o.seconds, "seconds", 30, "Deployments that are created at one a second")
	flag.IntVar(&o.rounds, "rounds", 2, "how often each way is measured; figures are medians of the rounds")
	flag.IntVar(&o.workers, "workers", 2, "Deployments that are being created at the same time")
	flag.StringVar(&o.manifold, "manifold", "bin/manifold", "the binary to measure")
	flag.BoolVar(&o.directOnly, "direct-only", false, "measure the clusters alone")
	flag.StringVar(&o.output, "o", "", "file to write everything measured to, as JSON")
	flag.BoolVar(&o.throughOnly, "through-only", false, "with -scale and -storm: measure the logical cluster alone, as when looking for what is slow")
	flag.BoolVar(&o.scale, "scale", false, "measure objects of unusual size and number instead, against one stock cluster")
	flag.IntVar(&o.sizes.Replicas, "replicas", 10_000, "with -scale: replicas of one Deployment")
	flag.IntVar(&o.sizes.ConfigMaps, "configmaps", 5_000, "with -scale: ConfigMaps of one namespace")
	flag.IntVar(&o.sizes.Namespaces, "namespaces", 1_000, "with -scale: namespaces")
	flag.IntVar(&o.sizes.Clusters, "clusters", 4, "with -scale: clusters that the logical cluster divides over")
	flag.BoolVar(&o.placement, "placement", false, "measure decisions over 1,000 clusters instead, in memory")
	flag.BoolVar(&o.failover, "failover", false, "measure the loss of one of many simulated clusters instead")
	flag.IntVar(&o.failoverSizes.Clusters, "ends", 100, "with -failover: simulated clusters")
	flag.IntVar(&o.failoverSizes.Deployments, "deployments", 10_000, "with -failover: Deployments")
	flag.IntVar(&o.failoverSizes.Namespaces, "over", 1, "with -failover: namespaces that the Deployments are in; those of one are in one cluster")
	flag.BoolVar(&o.drain, "drain", false, "measure the drain of a cluster instead, to another one")
	flag.IntVar(&o.drainCount, "moved", 1_000, "with -drain: Deployments")
	flag.BoolVar(&o.storm, "storm", false, "measure the memory instead that definitions of custom resources leave when they are gone")
	flag.IntVar(&o.stormSize, "definitions", 300, "with -storm: definitions")
	flag.BoolVar(&o.deletion, "delete", false, "measure deletions instead, as kubectl makes them, against one stock cluster")
	flag.BoolVar(&o.delivery, "delivery", false, "measure releases of applications instead; 0 of something leaves its part out")
	flag.IntVar(&o.deliverySizes.Targets, "targets", 100, "with -delivery: simulated clusters that one application is released to")
	flag.IntVar(&o.deliverySizes.Waves, "waves", 5, "with -delivery: waves of that")
	flag.DurationVar(&o.deliverySizes.Rollout, "rollout", time.Second, "with -delivery: how long a rollout takes in each of those clusters")
	flag.IntVar(&o.deliverySizes.Objects, "objects", 2_000, "with -delivery: objects of one application that is released to two simulated clusters")
	flag.IntVar(&o.deliverySizes.Apps, "apps", 100, "with -delivery: applications that are released at once on two stock clusters")
	flag.IntVar(&o.deliverySizes.Idle, "idle", 1_000, "with -delivery: applications that nothing happens to")
	flag.DurationVar(&o.deliverySizes.Rest, "rest", time.Minute, "with -delivery: for how long nothing happens to them")
	flag.BoolVar(&o.pipelines, "pipelines", false, "measure instead how soon pipelines show what their targets run, and what they cost at rest")
	flag.IntVar(&o.pipelineSizes.Pipelines, "lines", 500, "with -pipelines: pipelines of 4 environments, each of 5 targets in as many simulated clusters")
	flag.IntVar(&o.pipelineSizes.Changes, "changes", 200, "with -pipelines: versions that are changed, one after another")
	flag.DurationVar(&o.pipelineSizes.Rest, "resting", time.Minute, "with -pipelines: for how long nothing happens")
	flag.BoolVar(&o.traffic, "traffic", false, "count instead which requests fail while what answers them moves, on two stock clusters")
	flag.IntVar(&o.rate, "rate", 200, "with -traffic: requests of each client in a second")
	flag.BoolVar(&o.gateway, "gateway", false, "with -traffic: send requests from outside too, through a gateway before each cluster, which is built if it is missing; scenario split needs it")
	flag.StringVar(&o.scenarios, "scenarios", "", "with -traffic: names of scenarios, separated by commas; all without it: "+strings.Join(traffic.Names(), ","))
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// podsPerNode leaves room on the nodes, which take 110 pods each, so that the scheduler is not what is measured.
const podsPerNode = 55

func run(o options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // watches that end with their server are no news here

	root, err := tools.Root()
	if err != nil {
		return err
	}
	if o.placement {
		return runPlacement(ctx, o, root)
	}
	dir := filepath.Join(root, "_output", "bench")
	lock, err := stock.LockDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if o.failover {
		return runFailover(ctx, o, root, dir)
	}
	if o.delivery {
		return runDelivery(ctx, o, root, dir, func() (string, error) { return tools.Build(ctx, root, os.Stderr) })
	}
	if o.pipelines {
		return runPipelines(ctx, o, root, dir)
	}
	bin, err := tools.Build(ctx, root, os.Stderr)
	if err != nil {
		return err
	}
	if o.traffic {
		return runTraffic(ctx, o, root, dir, bin)
	}
	if o.drain {
		return runDrain(ctx, o, root, dir, bin)
	}
	if o.storm {
		return runStorm(ctx, o, root, dir, bin)
	}
	if o.deletion {
		return runDeletion(ctx, o, root, dir, bin)
	}
	if o.scale {
		return runScale(ctx, o, root, dir, bin)
	}
	nodes := max(3, o.count/podsPerNode+1)
	clusters, err := stock.StartAll(ctx,
		stock.Options{Name: "east", Dir: filepath.Join(dir, "east"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
		stock.Options{Name: "west", Dir: filepath.Join(dir, "west"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()

	b := &bench{options: o, report: newReport(o), ways: []way{newDirect(clusters)}, machine: &machine{clusters: clusters}}
	if !o.directOnly {
		hub, err := startHub(ctx, filepath.Join(root, o.manifold), dir, clusters, &b.report.Hub)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hub.Stop()) }()
		b.machine.hub = hub
		b.ways = append(b.ways, newThrough(clusters, hub))
	}
	if err := b.run(ctx); err != nil {
		return err
	}
	b.report.print(os.Stdout)
	b.report.Figures = b.report.figures()
	return o.write(b.report)
}

// runTraffic counts requests while Manifold moves what answers them.
func runTraffic(ctx context.Context, o options, root, dir, bin string) error {
	measured := traffic.Options{
		Manifold: filepath.Join(root, o.manifold), Root: root, BinDir: bin, Dir: dir, Rate: o.rate, Progress: os.Stderr,
	}
	if o.scenarios != "" {
		measured.Only = strings.Split(o.scenarios, ",")
	}
	if o.gateway {
		if _, err := tools.BuildGateway(ctx, root, os.Stderr); err != nil {
			return err
		}
		measured.Gateway = filepath.Join(bin, tools.Traefik)
	}
	report, err := traffic.Run(ctx, measured)
	if report == nil {
		return err
	}
	report.Print(os.Stdout)
	return errors.Join(err, report.Missed(), o.write(report))
}
