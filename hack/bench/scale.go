package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

// sizes are those of what -scale makes.
type sizes struct {
	Replicas   int `json:"replicas"`
	ConfigMaps int `json:"configMaps"`
	Namespaces int `json:"namespaces"`
	// Clusters is over how many clusters the logical cluster divides.
	Clusters int `json:"clusters"`
}

// scaleReport is everything measured with -scale.
type scaleReport struct {
	Time  time.Time `json:"time"`
	Sizes sizes     `json:"sizes"`
	Lines []line    `json:"lines"`
}

// line is one step, in seconds on one stock cluster and through the logical cluster. A step of the latter alone has no Stock.
type line struct {
	Step    string  `json:"step"`
	Stock   float64 `json:"stock,omitempty"`
	Through float64 `json:"through,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`
	// HubMemory is the resident memory of the logical cluster after the step, in MiB.
	HubMemory float64 `json:"hubMemoryMiB,omitempty"`
}

// runScale does the same things with objects of unusual size and number on one stock cluster, and then through a logical cluster in front
// of several that have as much together. One after the other: the machine is small.
func runScale(ctx context.Context, o options, root, dir, bin string) error {
	report := scaleReport{Time: time.Now().UTC().Truncate(time.Second), Sizes: o.sizes}
	var direct, through []measured
	var err error
	if !o.throughOnly {
		direct, err = scaleDirect(ctx, o, dir, bin)
		report.add(direct, false)
	}
	if err == nil && !o.directOnly {
		through, err = scaleThrough(ctx, o, root, dir, bin)
		report.add(through, true)
	}
	report.print(os.Stdout)
	if err != nil {
		return err
	}
	return o.write(report)
}

// podsOfANode is how many pods a node takes.
const podsOfANode = 110

// nodesFor returns how many nodes a cluster needs for so many pods, with some room.
func nodesFor(pods int) int { return max(3, pods*21/20/podsOfANode+2) }

func scaleDirect(ctx context.Context, o options, dir, bin string) (out []measured, err error) {
	clusters, err := stock.StartAll(ctx, stock.Options{
		Name: "one", Dir: filepath.Join(dir, "one"), BinDir: bin, Nodes: nodesFor(max(o.sizes.Replicas, o.sizes.Namespaces)), Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()
	client, err := kubernetes.NewForConfig(protobuf(clusters[0].RESTConfig()))
	if err != nil {
		return nil, err
	}
	s := &site{name: "stock", client: client, sizes: o.sizes, machine: &machine{clusters: clusters}}
	return s.run(ctx)
}

func scaleThrough(ctx context.Context, o options, root, dir, bin string) (out []measured, err error) {
	var all []stock.Options
	nodes := nodesFor(max(o.sizes.Replicas, o.sizes.Namespaces) / o.sizes.Clusters)
	for i := range o.sizes.Clusters {
		name := fmt.Sprintf("cluster-%d", i)
		all = append(all, stock.Options{Name: name, Dir: filepath.Join(dir, name), BinDir: bin, Nodes: nodes, Progress: os.Stderr})
	}
	clusters, err := stock.StartAll(ctx, all...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()
	hub, err := startHub(ctx, filepath.Join(root, o.manifold), dir, clusters, &hubFigures{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	s := &site{name: "through", client: hub.client, sizes: o.sizes, machine: &machine{clusters: clusters, hub: hub}, pin: "*"}
	return s.run(ctx)
}

// restart starts the logical cluster anew with all that there is, as a user updates it.
func (s *site) restart(ctx context.Context) error {
	if s.machine.hub == nil {
		return nil
	}
	return s.measure(ctx, "start the logical cluster again", func() error {
		if err := s.machine.hub.Terminate(); err != nil {
			return err
		}
		return s.machine.hub.Start(ctx)
	})
}

// memory is that of the logical cluster, if there is one.
func (s *site) memory() (float64, error) {
	if s.machine.hub == nil {
		return 0, nil
	}
	usage, err := process.UsageOf(s.machine.hub.Process().PID())
	return float64(usage.RSS) / (1 << 20), err
}

func (r *scaleReport) add(steps []measured, through bool) {
	for _, m := range steps {
		l := r.line(m.step)
		if through {
			l.Through, l.HubMemory = m.took, m.memory
		} else {
			l.Stock = m.took
		}
		if l.Stock > 0 && l.Through > 0 {
			l.Ratio = l.Through / l.Stock
		}
	}
}

func (r *scaleReport) line(step string) *line {
	for i := range r.Lines {
		if r.Lines[i].Step == step {
			return &r.Lines[i]
		}
	}
	r.Lines = append(r.Lines, line{Step: step})
	return &r.Lines[len(r.Lines)-1]
}

func (r *scaleReport) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%d replicas, %d ConfigMaps, %d namespaces\tone cluster\tthrough, %d clusters\tratio\tmemory\t\n",
		r.Sizes.Replicas, r.Sizes.ConfigMaps, r.Sizes.Namespaces, r.Sizes.Clusters)
	for _, l := range r.Lines {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", l.Step, figureText(l.Stock, "%.2f s"), figureText(l.Through, "%.2f s"),
			figureText(l.Ratio, "%.2f"), figureText(l.HubMemory, "%.0f MiB"))
	}
	table.Flush()
}

func figureText(value float64, format string) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf(format, value)
}
