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

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/logical"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

const (
	stormGroup = "storm.bench.example.com"
	// stormFields is how many fields with a description the schema of a definition has, as many as those of an operator of some size.
	stormFields = 200
	// stormTimeout bounds each step.
	stormTimeout = 15 * time.Minute
	// sampling is how often memory is looked at.
	sampling = time.Second
)

// stormReport is everything measured with -storm.
type stormReport struct {
	Time        time.Time   `json:"time"`
	Definitions int         `json:"definitions"`
	Stock       stormSeries `json:"stock"`
	Through     stormSeries `json:"through"`
}

// stormSeries is what became of one control plane. Memory is resident, in MiB.
type stormSeries struct {
	// Before and After are at rest, With at rest while all is there, and Peak is the most that there was at any time.
	Before float64 `json:"before"`
	With   float64 `json:"with"`
	After  float64 `json:"after"`
	Peak   float64 `json:"peak"`
	// Made and Gone are how long it took to make and to delete all, in seconds.
	Made float64 `json:"made"`
	Gone float64 `json:"gone"`
	// Curve is the memory of every second.
	Curve []float64 `json:"curve"`
}

// runStorm makes and deletes many definitions of custom resources, with an object of each: first in a stock cluster, then in a logical
// cluster in front of it.
func runStorm(ctx context.Context, o options, root, dir, bin string) (err error) {
	clusters, err := stock.StartAll(ctx, stock.Options{Name: "east", Dir: filepath.Join(dir, "east"), BinDir: bin, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()
	east, report := clusters[0], stormReport{Time: time.Now().UTC().Truncate(time.Second), Definitions: o.stormSize}
	if !o.throughOnly {
		below, err := newStorm("stock cluster", o.stormSize, east.RESTConfig(), &machine{clusters: clusters}, func() (float64, error) { return planeMemory(east) })
		if err != nil {
			return err
		}
		if report.Stock, err = below.run(ctx); err != nil {
			return err
		}
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
	if err := server.Join(ctx, east); err != nil {
		return err
	}
	config, err := server.RESTConfig()
	if err != nil {
		return err
	}
	above, err := newStorm("logical cluster", o.stormSize, config, &machine{clusters: clusters, hub: &hub{Server: server}}, func() (float64, error) {
		usage, err := process.UsageOf(server.Process().PID())
		return mebibytes(usage.RSS), err
	})
	if err != nil {
		return err
	}
	if report.Through, err = above.run(ctx); err != nil {
		return err
	}
	report.print(os.Stdout)
	return o.write(report)
}

// planeMemory is what the programs of a cluster take that one process does the work of in a logical cluster.
func planeMemory(c *stock.Cluster) (float64, error) {
	usage, err := c.Usage()
	var total int64
	for _, component := range []stock.Component{stock.Etcd, stock.APIServer, stock.ControllerManager} {
		total += usage[component].RSS
	}
	return mebibytes(total), err
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// storm is one run.
type storm struct {
	name    string
	count   int
	crds    clientset.Interface
	objects dynamic.Interface
	machine *machine
	memory  func() (float64, error)
}

func newStorm(name string, count int, config *rest.Config, m *machine, memory func() (float64, error)) (*storm, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	crds, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the %s: %w", name, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the %s: %w", name, err)
	}
	return &storm{name, count, crds, objects, m, memory}, nil
}

func (s *storm) run(ctx context.Context) (series stormSeries, err error) {
	if series.Before, err = s.atRest(ctx); err != nil {
		return series, err
	}
	stop := s.sample(ctx, &series)
	defer stop()
	if series.Made, err = s.timed(ctx, "make definitions and objects", s.make); err != nil {
		return series, err
	}
	if series.With, err = s.atRest(ctx); err != nil {
		return series, err
	}
	if series.Gone, err = s.timed(ctx, "delete the definitions", s.delete); err != nil {
		return series, err
	}
	series.After, err = s.atRest(ctx)
	stop()
	return series, err
}

// atRest returns the memory once there is nothing to do.
func (s *storm) atRest(ctx context.Context) (float64, error) {
	if err := s.machine.settle(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(restTime):
	}
	return s.memory()
}

// sample writes down the memory from now on, until the function that it returns is called.
func (s *storm) sample(ctx context.Context, series *stormSeries) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var sampler sync.WaitGroup
	sampler.Go(func() {
		wait.UntilWithContext(ctx, func(context.Context) {
			if now, err := s.memory(); err == nil {
				series.Curve = append(series.Curve, now)
				series.Peak = max(series.Peak, now)
			}
		}, sampling)
	})
	return func() {
		cancel()
		sampler.Wait()
	}
}

func (s *storm) timed(ctx context.Context, step string, do func(context.Context) error) (float64, error) {
	fmt.Fprintf(os.Stderr, "bench: %s: %s\n", s.name, step)
	ctx, cancel := context.WithTimeout(ctx, stormTimeout)
	defer cancel()
	start := time.Now()
	if err := do(ctx); err != nil {
		return 0, fmt.Errorf("%s: %s: %w", s.name, step, err)
	}
	return time.Since(start).Seconds(), nil
}

func (s *storm) make(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(scaleWorkers)
	for i := range s.count {
		group.Go(func() error {
			plural := fmt.Sprintf("kind%04ds", i)
			if _, err := s.crds.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, stormDefinition(plural), metav1.CreateOptions{}); err != nil {
				return err
			}
			return s.object(ctx, plural)
		})
	}
	return group.Wait()
}

// object makes one object of a kind. An API server begins to serve a kind some time after it has said so.
func (s *storm) object(ctx context.Context, plural string) error {
	client := s.objects.Resource(schema.GroupVersionResource{Group: stormGroup, Version: "v1", Resource: plural}).Namespace(metav1.NamespaceDefault)
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": stormGroup + "/v1", "kind": "Kind" + plural, "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"field000": "x"},
		}}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// delete deletes all definitions, and their objects with them, and waits until they are gone.
func (s *storm) delete(ctx context.Context) error {
	client := s.crds.ApiextensionsV1().CustomResourceDefinitions()
	ours := metav1.ListOptions{LabelSelector: stormGroup}
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, ours); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, sampling, true, func(ctx context.Context) (bool, error) {
		ours.Limit = 1
		left, err := client.List(ctx, ours)
		return err == nil && len(left.Items) == 0, err
	})
}

func stormDefinition(plural string) *apiextensionsv1.CustomResourceDefinition {
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for i := range stormFields {
		fields[fmt.Sprintf("field%03d", i)] = apiextensionsv1.JSONSchemaProps{
			Type: "string", Description: fmt.Sprintf("Field %d of %s says one of many things about it, in some words that nobody needs to read.", i, plural),
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + stormGroup, Labels: map[string]string{stormGroup: "true"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: stormGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "Kind" + plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields}, "status": {Type: "object"}},
				}},
			}},
		},
	}
}

// curvePoints is how many points of the curves are printed.
const curvePoints = 12

func (r stormReport) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d definitions, resident MiB\tbefore\tpeak\twith all\tafter\tafter/before\tmade in\tgone in\n", r.Definitions)
	for _, row := range []struct {
		name string
		stormSeries
	}{{"stock etcd, API server and controllers", r.Stock}, {"logical cluster", r.Through}} {
		if row.Before == 0 {
			continue // it was left out
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%.0f s\t%.0f s\n",
			row.name, row.Before, row.Peak, row.With, row.After, row.After/row.Before, row.Made, row.Gone)
	}
	for _, row := range []struct {
		name  string
		curve []float64
	}{{"curve, stock", r.Stock.Curve}, {"curve, logical", r.Through.Curve}} {
		fmt.Fprintf(w, "%s", row.name)
		for i := range min(curvePoints, len(row.curve)) {
			at := i * (len(row.curve) - 1) / max(1, min(curvePoints, len(row.curve))-1)
			fmt.Fprintf(w, "\t%.0f", row.curve[at])
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}
