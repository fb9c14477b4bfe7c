package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/logical"
)

const (
	// moveTimeout bounds the drain.
	moveTimeout = 30 * time.Minute
	// drainNamespace is where everything is.
	drainNamespace = "drain"
)

// drainReport is everything measured with -drain. Times are in seconds.
type drainReport struct {
	Time        time.Time `json:"time"`
	Deployments int       `json:"deployments"`
	// Direct is how long it takes to create as many directly in the cluster that they are moved to, until all are ready.
	Direct float64 `json:"direct"`
	// Drain is how long it takes until the other cluster is empty and all are ready.
	Drain float64 `json:"drain"`
	Ratio float64 `json:"ratio"`
	// Wanted is how many replicas there should be in both clusters together, and Least the fewest that were ready at any time of the drain.
	Wanted int64 `json:"wanted"`
	Least  int64 `json:"least"`
}

// runDrain moves Deployments from one stock cluster to another by draining the first.
func runDrain(ctx context.Context, o options, root, dir, bin string) (err error) {
	nodes := nodesFor(o.drainCount)
	clusters, err := stock.StartAll(ctx,
		stock.Options{Name: "east", Dir: filepath.Join(dir, "east"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
		stock.Options{Name: "west", Dir: filepath.Join(dir, "west"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()
	d := &drain{options: o, from: clusters[0], to: clusters[1], machine: &machine{clusters: clusters}}
	report := drainReport{Time: time.Now().UTC().Truncate(time.Second), Deployments: o.drainCount, Wanted: int64(o.drainCount)}
	if report.Direct, err = d.direct(ctx); err != nil {
		return fmt.Errorf("create %d Deployments directly: %w", o.drainCount, err)
	}
	dir = filepath.Join(dir, "manifold")
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the data of an earlier run: %w", err)
	}
	server, err := logical.Start(ctx, logical.Options{Binary: filepath.Join(root, o.manifold), Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if report.Drain, report.Least, err = d.through(ctx, server); err != nil {
		return fmt.Errorf("drain %d Deployments: %w", o.drainCount, err)
	}
	report.Ratio = report.Drain / report.Direct
	report.print(os.Stdout)
	if o.output == "" {
		return nil
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.output, append(data, '\n'), 0o644)
}

// drain is one run.
type drain struct {
	options  options
	from, to *stock.Cluster
	machine  *machine
}

// create makes the Deployments through an API and waits until all are ready there.
func (d *drain) create(ctx context.Context, w way) (took float64, err error) {
	o, err := w.observe(ctx, drainNamespace, d.options.drainCount)
	if err != nil {
		return 0, err
	}
	defer o.stop()
	start := time.Now()
	var group errgroup.Group
	group.SetLimit(scaleWorkers)
	for i := range d.options.drainCount {
		group.Go(func() error { return w.createDeployment(ctx, drainNamespace, fmt.Sprintf("app-%04d", i)) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	ready, err := o.ready.wait(ctx)
	if err != nil {
		return 0, fmt.Errorf("until ready: %w", err)
	}
	return ready.Sub(start).Seconds(), nil
}

// direct measures the creation in the cluster that everything is moved to later.
func (d *drain) direct(ctx context.Context) (float64, error) {
	fmt.Fprintf(os.Stderr, "bench: create %d Deployments directly in %s\n", d.options.drainCount, d.to.Name())
	below := apis([]*stock.Cluster{d.to})
	w := way{name: "direct", targets: below, clusters: below, replicas: 1}
	if err := w.createNamespace(ctx, drainNamespace); err != nil {
		return 0, err
	}
	took, err := d.create(ctx, w)
	if err != nil {
		return 0, err
	}
	if err := w.deleteNamespace(ctx, drainNamespace); err != nil {
		return 0, err
	}
	return took, d.machine.settle(ctx)
}

// through creates everything through the logical cluster in one cluster, and drains that.
func (d *drain) through(ctx context.Context, server *logical.Server) (took float64, least int64, err error) {
	config, err := server.RESTConfig()
	if err != nil {
		return 0, 0, err
	}
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return 0, 0, err
	}
	for _, cluster := range []*stock.Cluster{d.from, d.to} {
		fmt.Fprintf(os.Stderr, "bench: join cluster %s\n", cluster.Name())
		if err := server.Join(ctx, cluster); err != nil {
			return 0, 0, err
		}
	}
	d.machine.hub = &hub{Server: server, client: client}
	if err := d.command(ctx, server, "cordon", d.to.Name()); err != nil {
		return 0, 0, err
	}
	fmt.Fprintf(os.Stderr, "bench: create %d Deployments in %s\n", d.options.drainCount, d.from.Name())
	w := way{name: "through", targets: []api{{name: "logical cluster", client: client}}, clusters: apis([]*stock.Cluster{d.from}), replicas: 1}
	if err := w.createNamespace(ctx, drainNamespace); err != nil {
		return 0, 0, err
	}
	if _, err := d.create(ctx, w); err != nil {
		return 0, 0, err
	}
	if err := d.machine.settle(ctx); err != nil {
		return 0, 0, err
	}
	if err := d.command(ctx, server, "uncordon", d.to.Name()); err != nil {
		return 0, 0, err
	}
	return d.move(ctx, server)
}

// move drains the cluster and watches how many replicas are ready in both.
func (d *drain) move(ctx context.Context, server *logical.Server) (took float64, least int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	r := &readiness{ready: map[string]map[string]int64{}, changed: make(chan struct{}, 1)}
	for _, cluster := range apis([]*stock.Cluster{d.from, d.to}) {
		if err := r.watch(ctx, cluster, &watching); err != nil {
			return 0, 0, err
		}
	}
	r.begin()
	fmt.Fprintf(os.Stderr, "bench: drain %s\n", d.from.Name())
	start := time.Now()
	if err := d.command(ctx, server, "drain", d.from.Name(), "--wait=false"); err != nil {
		return 0, 0, err
	}
	if err := r.until(ctx, func() bool {
		return len(r.ready[d.from.Name()]) == 0 && sumOf(r.ready[d.to.Name()]) >= int64(d.options.drainCount)
	}); err != nil {
		return 0, 0, err
	}
	return time.Since(start).Seconds(), r.least, nil
}

// command runs "manifold cluster ...".
func (d *drain) command(ctx context.Context, server *logical.Server, args ...string) error {
	if out, err := server.Command(ctx, append([]string{"cluster"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("manifold cluster %v: %w\n%s", args, err, out)
	}
	return nil
}

// readiness is what watches have shown of the ready replicas in all clusters.
type readiness struct {
	mu sync.Mutex
	// ready are those of each Deployment that there is, by cluster and name; least is the smallest total since begin.
	ready map[string]map[string]int64
	least int64

	changed chan struct{} // holds one when something has changed
}

func (r *readiness) watch(ctx context.Context, place api, watching *sync.WaitGroup) error {
	informer := cache.NewSharedInformer(
		cache.NewListWatchFromClient(place.client.AppsV1().RESTClient(), "deployments", drainNamespace, fields.Everything()), &appsv1.Deployment{}, 0)
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.set(place.name, object, true) },
		UpdateFunc: func(_, object any) { r.set(place.name, object, true) },
		DeleteFunc: func(object any) { r.set(place.name, object, false) },
	})
	if err != nil {
		return fmt.Errorf("watch deployments in %s: %w", place.name, err)
	}
	watching.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return ctx.Err()
	}
	return nil
}

func (r *readiness) set(place string, object any, there bool) {
	name, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready[place] == nil {
		r.ready[place] = map[string]int64{}
	}
	delete(r.ready[place], name.Name)
	if d, ok := object.(*appsv1.Deployment); ok && there {
		r.ready[place][name.Name] = int64(d.Status.ReadyReplicas)
	}
	r.least = min(r.least, r.total())
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// total is what is ready everywhere. The caller holds the lock.
func (r *readiness) total() (sum int64) {
	for _, ready := range r.ready {
		sum += sumOf(ready)
	}
	return sum
}

func sumOf(ready map[string]int64) (sum int64) {
	for _, n := range ready {
		sum += n
	}
	return sum
}

// begin has the least counted from now on.
func (r *readiness) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.least = r.total()
}

// until waits until enough, which is called under the lock, says so.
func (r *readiness) until(ctx context.Context, enough func() bool) error {
	for {
		r.mu.Lock()
		done := enough()
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			r.mu.Lock()
			defer r.mu.Unlock()
			return fmt.Errorf("%d are ready in all: %w", r.total(), ctx.Err())
		case <-r.changed:
		}
	}
}

func (r *drainReport) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	kept := "no"
	if r.Least >= r.Wanted {
		kept = "yes"
	}
	fmt.Fprint(table, "figure\tvalue\tgoal\tmet\t\n")
	fmt.Fprintf(table, "create %d Deployments directly until ready\t%s\t\t\t\n", r.Deployments, number(r.Direct, "s"))
	fmt.Fprintf(table, "drain them to that cluster\t%s\t\t\t\n", number(r.Drain, "s"))
	fmt.Fprintf(table, "ratio\t%s\t\t\t\n", number(r.Ratio, ""))
	fmt.Fprintf(table, "fewest replicas that were ready\t%d\t%d\t%s\t\n", r.Least, r.Wanted, kept)
	table.Flush()
}
