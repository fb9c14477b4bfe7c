package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/hack/stock"
)

const (
	// deletionGoal is how much longer than on a stock cluster a deletion may take.
	deletionGoal = 1.5
	// objectsOfNamespace are those of the namespace that is deleted as a whole, of Deployments, Services, ConfigMaps and Secrets alike.
	objectsOfNamespace = 100
)

// deletionSizes are how many Deployments are deleted one after another, each with a Service and a ConfigMap, and how often that is done in a
// round: what takes a moment only is repeated.
var deletionSizes = []struct{ count, times int }{{1, 5}, {20, 1}, {300, 1}}

// deletionReport is everything measured with -delete. Times are in seconds.
type deletionReport struct {
	Time  time.Time       `json:"time"`
	Lines []*deletionLine `json:"lines"`
}

// deletionLine is one thing that is deleted: how long kubectl takes, on one stock cluster and through the logical cluster.
type deletionLine struct {
	What    string    `json:"what"`
	Stock   []float64 `json:"stock"`
	Through []float64 `json:"through"`
	Ratio   float64   `json:"ratio"`
}

// runDeletion deletes the same applications on one stock cluster, and through a logical cluster in front of two, by turns.
func runDeletion(ctx context.Context, o options, root, dir, bin string) (err error) {
	const nodes = 8
	clusters, err := stock.StartAll(ctx,
		stock.Options{Name: "east", Dir: filepath.Join(dir, "east"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
		stock.Options{Name: "west", Dir: filepath.Join(dir, "west"), BinDir: bin, Nodes: nodes, Progress: os.Stderr},
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()
	hub, err := startHub(ctx, filepath.Join(root, o.manifold), dir, clusters, &hubFigures{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	first := apis(clusters[:1])
	d := &deletion{
		options: o, machine: &machine{clusters: clusters, hub: hub}, dir: dir, bin: bin,
		kubeconfigs: map[string]string{"stock": clusters[0].Kubeconfig(), "through": hub.Kubeconfig()},
		ways:        []way{{name: "stock", targets: first, clusters: first, replicas: 2}, newThrough(clusters, hub)},
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	d.report.Time = time.Now().UTC().Truncate(time.Second)
	d.report.print(os.Stdout)
	return o.write(d.report)
}

// deletion is one run.
type deletion struct {
	options options
	machine *machine
	ways    []way
	// dir is for what kubectl reads, and bin is where it is itself.
	dir, bin    string
	kubeconfigs map[string]string // by way
	report      deletionReport
}

func (d *deletion) run(ctx context.Context) error {
	for round := range d.options.rounds {
		for _, size := range deletionSizes {
			what := fmt.Sprintf("Deployment, Service and ConfigMap, %d of each", size.count)
			for i := range size.times {
				for _, w := range d.ways {
					name := fmt.Sprintf("delete-%s-%d-%d-%d", w.name, size.count, round, i)
					if err := d.applications(ctx, w, what, name, size.count); err != nil {
						return fmt.Errorf("%s, %s: %w", what, w.name, err)
					}
				}
			}
		}
		what := fmt.Sprintf("a namespace of %d objects", objectsOfNamespace)
		for _, w := range d.ways {
			if err := d.namespace(ctx, w, what, fmt.Sprintf("delete-%s-all-%d", w.name, round)); err != nil {
				return fmt.Errorf("%s, %s: %w", what, w.name, err)
			}
		}
	}
	return nil
}

// applications makes applications in a namespace and measures how long it takes to delete them one after another.
func (d *deletion) applications(ctx context.Context, w way, what, namespace string, count int) error {
	if _, err := d.prepare(ctx, w, namespace, count); err != nil {
		return err
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("app-%03d", i)
	}
	file, err := d.manifests(namespace, names)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := d.kubectl(ctx, w, "delete", "-f", file); err != nil {
		return err
	}
	d.report.add(what, w.name, time.Since(start))
	if err := w.deleteNamespace(ctx, namespace); err != nil {
		return err
	}
	return d.machine.settle(ctx)
}

// namespace measures how long it takes to delete a namespace with what is in it.
func (d *deletion) namespace(ctx context.Context, w way, what, namespace string) error {
	const kinds = 4
	target, err := d.prepare(ctx, w, namespace, objectsOfNamespace/kinds)
	if err != nil {
		return err
	}
	for i := range objectsOfNamespace / kinds {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%03d", i)}}
		if _, err := target.client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := d.machine.settle(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := d.kubectl(ctx, w, "delete", "namespace", namespace); err != nil {
		return err
	}
	d.report.add(what, w.name, time.Since(start))
	for _, cluster := range w.clusters {
		if err := untilGone(ctx, cluster, namespace); err != nil {
			return err
		}
	}
	return d.machine.settle(ctx)
}

// prepare makes applications in a new namespace and waits until they are ready and nothing goes on any more.
func (d *deletion) prepare(ctx context.Context, w way, namespace string, count int) (api, error) {
	fmt.Fprintf(os.Stderr, "bench: %s\n", namespace)
	target := w.targets[0]
	if err := w.createNamespace(ctx, namespace); err != nil {
		return target, err
	}
	o, err := w.observe(ctx, namespace, count)
	if err != nil {
		return target, err
	}
	defer o.stop()
	var group errgroup.Group
	group.SetLimit(d.options.workers)
	for i := range count {
		group.Go(func() error { return w.createApplication(ctx, namespace, fmt.Sprintf("app-%03d", i)) })
	}
	if err := group.Wait(); err != nil {
		return target, err
	}
	if err := o.wait(ctx); err != nil {
		return target, err
	}
	return target, d.machine.settle(ctx)
}

// createApplication makes a Deployment with a ConfigMap that it mounts and a Service in front of it.
func (w way) createApplication(ctx context.Context, namespace, name string) error {
	client := w.targets[0].client
	d := deployment(name, w.replicas)
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
	}}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": "value"}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: d.Spec.Selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	return err
}

// manifests writes what an application consists of, one after another, into a file for kubectl.
func (d *deletion) manifests(namespace string, names []string) (string, error) {
	var content strings.Builder
	for _, name := range names {
		for _, kind := range []string{"apps/v1, kind: Deployment", "v1, kind: Service", "v1, kind: ConfigMap"} {
			fmt.Fprintf(&content, "---\n{apiVersion: %s, metadata: {namespace: %s, name: %s}}\n", kind, namespace, name)
		}
	}
	file := filepath.Join(d.dir, "delete.yaml")
	return file, os.WriteFile(file, []byte(content.String()), 0o600)
}

// kubectl runs the stock kubectl, which deletes one object after another and then waits until all are gone.
func (d *deletion) kubectl(ctx context.Context, w way, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "kubectl"), append([]string{"--kubeconfig", d.kubeconfigs[w.name]}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return nil
}

func (r *deletionReport) add(what, way string, took time.Duration) {
	line := r.line(what)
	if way == "stock" {
		line.Stock = append(line.Stock, took.Seconds())
	} else {
		line.Through = append(line.Through, took.Seconds())
	}
	if before := median(line.Stock); before > 0 {
		line.Ratio = median(line.Through) / before
	}
}

func (r *deletionReport) line(what string) *deletionLine {
	for _, l := range r.Lines {
		if l.What == what {
			return l
		}
	}
	line := &deletionLine{What: what}
	r.Lines = append(r.Lines, line)
	return line
}

func (r *deletionReport) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "kubectl delete\tone cluster\tthrough, 2 clusters\tratio\tgoal\tmet\t\n")
	for _, l := range r.Lines {
		met := "no"
		if l.Ratio <= deletionGoal {
			met = "yes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.2f\t%.2f\t%s\t\n", l.What,
			number(median(l.Stock)*1000, "ms"), number(median(l.Through)*1000, "ms"), l.Ratio, deletionGoal, met)
	}
	table.Flush()
}
