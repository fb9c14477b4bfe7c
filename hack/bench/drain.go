package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Ready is how long the drain takes until all are ready in the cluster that they are moved to, Drain until the other one is empty.
	Ready float64 `json:"ready"`
	Drain float64 `json:"drain"`
	// Ratio is Ready by Direct.
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
	if err = d.through(ctx, server, &report); err != nil {
		return fmt.Errorf("drain %d Deployments: %w", o.drainCount, err)
	}
	report.Ratio = report.Ready / report.Direct
	report.print(os.Stdout)
	return o.write(report)
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
func (d *drain) through(ctx context.Context, server *logical.Server, report *drainReport) error {
	config, err := server.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	for _, cluster := range []*stock.Cluster{d.from, d.to} {
		fmt.Fprintf(os.Stderr, "bench: join cluster %s\n", cluster.Name())
		if err := server.Join(ctx, cluster); err != nil {
			return err
		}
	}
	d.machine.hub = &hub{Server: server, client: client}
	if err := d.command(ctx, server, "cordon", d.to.Name()); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: create %d Deployments in %s\n", d.options.drainCount, d.from.Name())
	w := way{name: "through", targets: []api{{name: "logical cluster", client: client}}, clusters: apis([]*stock.Cluster{d.from}), replicas: 1}
	if err := w.createNamespace(ctx, drainNamespace); err != nil {
		return err
	}
	if _, err := d.create(ctx, w); err != nil {
		return err
	}
	if err := d.machine.settle(ctx); err != nil {
		return err
	}
	if err := d.command(ctx, server, "uncordon", d.to.Name()); err != nil {
		return err
	}
	return d.move(ctx, server, report)
}

// move drains the cluster and watches how many replicas are ready in both.
func (d *drain) move(ctx context.Context, server *logical.Server, report *drainReport) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	places := apis([]*stock.Cluster{d.from, d.to})
	r := newReadiness(int64(d.options.drainCount), places)
	for _, place := range places {
		if err := r.watch(ctx, place, &watching); err != nil {
			return err
		}
	}
	watching.Go(func() { r.verify(ctx) })
	fmt.Fprintf(os.Stderr, "bench: drain %s\n", d.from.Name())
	start := time.Now()
	if err := d.command(ctx, server, "drain", d.from.Name(), "--wait=false"); err != nil {
		return err
	}
	return r.until(ctx, start, d.from.Name(), d.to.Name(), report)
}

// command runs "manifold cluster ...".
func (d *drain) command(ctx context.Context, server *logical.Server, args ...string) error {
	if out, err := server.Command(ctx, append([]string{"cluster"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("manifold cluster %v: %w\n%s", args, err, out)
	}
	return nil
}

// readiness is what watches have shown of the ready replicas in all clusters, of Deployments of one replica each.
//
// Two watches are not in step: that a Deployment is gone from one cluster may be told before that it is ready in the other, though it came
// after. So what seems not to be ready anywhere is read once more: what has become ready before it left the other cluster is ready then.
type readiness struct {
	wanted int64
	places []api

	mu sync.Mutex
	// ready are those of each Deployment that there is, by cluster and name. missing are the Deployments that were found ready nowhere, and
	// least is the fewest that were ready at a time.
	ready   map[string]map[string]int64
	missing map[string]bool
	least   int64

	doubts  chan string   // names of Deployments that seem to be ready nowhere
	changed chan struct{} // holds one when something has changed
}

func newReadiness(wanted int64, places []api) *readiness {
	r := &readiness{
		wanted: wanted, places: places, ready: map[string]map[string]int64{}, missing: map[string]bool{}, least: wanted,
		doubts: make(chan string, 100*wanted), changed: make(chan struct{}, 1),
	}
	for _, place := range places {
		r.ready[place.name] = map[string]int64{}
	}
	return r
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
	delete(r.ready[place], name.Name)
	if d, ok := object.(*appsv1.Deployment); ok && there {
		r.ready[place][name.Name] = int64(d.Status.ReadyReplicas)
	}
	if r.isReady(name.Name) {
		delete(r.missing, name.Name)
	} else {
		r.doubts <- name.Name
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// isReady reports whether a Deployment is ready anywhere. The caller holds the lock.
func (r *readiness) isReady(name string) bool {
	for _, ready := range r.ready {
		if ready[name] > 0 {
			return true
		}
	}
	return false
}

// verify reads what is in doubt until ctx ends.
func (r *readiness) verify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-r.doubts:
			if r.readyNow(ctx, name) {
				continue
			}
			r.mu.Lock()
			if !r.isReady(name) {
				r.missing[name] = true
				r.least = min(r.least, r.wanted-int64(len(r.missing)))
			}
			r.mu.Unlock()
		}
	}
}

// readyNow reads whether a Deployment is ready anywhere; if that cannot be told, it is not.
func (r *readiness) readyNow(ctx context.Context, name string) bool {
	for _, place := range r.places {
		d, err := place.client.AppsV1().Deployments(drainNamespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas > 0 {
			return true
		}
	}
	return false
}

// until waits until all have moved, and reports how long that took and the fewest that were ready.
func (r *readiness) until(ctx context.Context, start time.Time, from, to string, report *drainReport) error {
	for {
		r.mu.Lock()
		left, moved := len(r.ready[from]), sumOf(r.ready[to])
		report.Least = r.least
		r.mu.Unlock()
		if report.Ready == 0 && moved >= r.wanted {
			report.Ready = time.Since(start).Seconds()
		}
		if left == 0 && moved >= r.wanted {
			report.Drain = time.Since(start).Seconds()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d Deployments are left, %d are ready in the other cluster: %w", left, moved, ctx.Err())
		case <-r.changed:
		}
	}
}

func sumOf(ready map[string]int64) (sum int64) {
	for _, n := range ready {
		sum += n
	}
	return sum
}

func (r *drainReport) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	kept := "no"
	if r.Least >= r.Wanted {
		kept = "yes"
	}
	fmt.Fprint(table, "figure\tvalue\tgoal\tmet\t\n")
	fmt.Fprintf(table, "create %d Deployments directly until ready\t%s\t\t\t\n", r.Deployments, number(r.Direct, "s"))
	fmt.Fprintf(table, "drain them until ready in that cluster\t%s\t\t\t\n", number(r.Ready, "s"))
	fmt.Fprintf(table, "drain them until the other cluster is empty\t%s\t\t\t\n", number(r.Drain, "s"))
	fmt.Fprintf(table, "ratio\t%s\t\t\t\n", number(r.Ratio, ""))
	fmt.Fprintf(table, "fewest replicas that were ready\t%d\t%d\t%s\t\n", r.Least, r.Wanted, kept)
	table.Flush()
}
