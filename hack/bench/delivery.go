package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// deliveryNamespace is where all applications are.
const deliveryNamespace = "delivery"

// deliverySizes are those of what -delivery makes. A part of which there is nothing is left out.
type deliverySizes struct {
	// Targets are the simulated clusters that one application is released to in Waves, and Rollout is how long each takes.
	Targets int           `json:"targets"`
	Waves   int           `json:"waves"`
	Rollout time.Duration `json:"rollout"`
	// Apps are released at once on two stock clusters.
	Apps int `json:"apps"`
	// Idle are applications that nothing happens to for the time of Rest.
	Idle int           `json:"idle"`
	Rest time.Duration `json:"rest"`
	// Objects are those of one application that is released to two simulated clusters.
	Objects int `json:"objects"`
}

// deliveryReport is everything measured with -delivery, or -pipelines, with the sizes of that.
type deliveryReport struct {
	Time  time.Time      `json:"time"`
	Sizes any            `json:"sizes"`
	Lines []deliveryLine `json:"lines"`
}

// deliveryLine is a line of the table.
type deliveryLine struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	// Goal is what the value may be at most, nil if there is no goal.
	Goal *float64 `json:"goal,omitempty"`
}

// runDelivery measures what releases cost: of one application over many clusters, of many applications at once, and of many that rest.
func runDelivery(ctx context.Context, o options, root, dir string, stockBin func() (string, error)) error {
	report := &deliveryReport{Time: time.Now().UTC().Truncate(time.Second), Sizes: o.deliverySizes}
	sizes, binary, dir := o.deliverySizes, filepath.Join(root, o.manifold), filepath.Join(dir, "delivery")
	if sizes.Targets > 0 {
		if err := measureWaves(ctx, sizes, binary, dir, report); err != nil {
			return fmt.Errorf("release one application to %d clusters: %w", sizes.Targets, err)
		}
	}
	if sizes.Objects > 0 {
		if err := measureLarge(ctx, sizes, binary, dir, report); err != nil {
			return fmt.Errorf("release an application of %d objects: %w", sizes.Objects, err)
		}
	}
	if sizes.Apps > 0 {
		bin, err := stockBin()
		if err != nil {
			return err
		}
		if err := measureCrowd(ctx, sizes, binary, dir, bin, report); err != nil {
			return fmt.Errorf("release %d applications at once: %w", sizes.Apps, err)
		}
	}
	if sizes.Idle > 0 {
		if err := measureRest(ctx, sizes, binary, dir, report); err != nil {
			return fmt.Errorf("leave %d applications alone: %w", sizes.Idle, err)
		}
	}
	report.print(os.Stdout)
	return o.write(report)
}

// add adds a figure without a goal.
func (r *deliveryReport) add(unit string, value float64, format string, args ...any) {
	r.Lines = append(r.Lines, deliveryLine{Name: fmt.Sprintf(format, args...), Value: value, Unit: unit})
}

// bound adds a figure that may be so much at most.
func (r *deliveryReport) bound(goal float64, unit string, value float64, format string, args ...any) {
	r.Lines = append(r.Lines, deliveryLine{Name: fmt.Sprintf(format, args...), Value: value, Unit: unit, Goal: &goal})
}

// writes adds what a number of writes consists of.
func (r *deliveryReport) writes(where string, counts map[string]float64) {
	for _, call := range slices.Sorted(maps.Keys(counts)) {
		if counts[call] >= 0.005 {
			r.add("", counts[call], "  %s: %s", where, call)
		}
	}
}

func (r *deliveryReport) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "figure\tvalue\tgoal\tmet\t\n")
	for _, l := range r.Lines {
		goal, met := "", ""
		if l.Goal != nil {
			goal, met = fmt.Sprintf("%.2f %s", *l.Goal, l.Unit), "yes"
			if l.Value > *l.Goal {
				met = "no"
			}
		}
		fmt.Fprintf(table, "%s\t%.2f %s\t%s\t%s\t\n", l.Name, l.Value, l.Unit, goal, met)
	}
	table.Flush()
}

// delivered is an application of one Deployment.
func delivered(name string, replicas int32, targets []v1alpha1.Target, stages ...v1alpha1.Stage) (*v1alpha1.Application, error) {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: deliveryNamespace, Name: name}}
	app.Spec.Targets = targets
	if len(stages) > 0 {
		app.Spec.Pipeline = &v1alpha1.Pipeline{Stages: stages}
	}
	return app, hold(app, 1, replicas)
}

// hold has an application hold a version of its Deployment, with so many pods in each cluster.
func hold(app *v1alpha1.Application, version int, replicas int32) error {
	of := deployment(app.Name, replicas)
	of.APIVersion, of.Kind = "apps/v1", "Deployment"
	of.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("app:%d", version)
	raw, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("encode the Deployment of Application %s: %w", app.Name, err)
	}
	app.Spec.Source.Inline = &v1alpha1.InlineSource{Objects: []runtime.RawExtension{{Raw: raw}}}
	return nil
}

// workshop makes applications and changes them.
type workshop struct {
	client   kubernetes.Interface
	manifold versioned.Interface
	// replicas are the pods of an application in each cluster. Simulated ones have no pods, and a status waits until those that it counts are
	// shown, so there are to be none.
	replicas int32
}

func (w *workshop) createNamespace(ctx context.Context) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: deliveryNamespace}}
	_, err := w.client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %q: %w", deliveryNamespace, err)
	}
	return nil
}

// create makes applications of the same targets and stages.
func (w *workshop) create(ctx context.Context, names []string, targets []v1alpha1.Target, stages ...v1alpha1.Stage) error {
	return forAll(names, func(name string) error {
		app, err := delivered(name, w.replicas, targets, stages...)
		if err != nil {
			return err
		}
		if _, err := w.manifold.DeliveryV1alpha1().Applications(deliveryNamespace).Create(ctx, app, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create Application %q: %w", name, err)
		}
		return nil
	})
}

// change gives applications another version.
func (w *workshop) change(ctx context.Context, names []string, version int) error {
	client := w.manifold.DeliveryV1alpha1().Applications(deliveryNamespace)
	return forAll(names, func(name string) error {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			app, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := hold(app, version, w.replicas); err != nil {
				return err
			}
			_, err = client.Update(ctx, app, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("change Application %q: %w", name, err)
		}
		return nil
	})
}

// forAll calls do for all names, some at a time.
func forAll(names []string, do func(name string) error) error {
	var group errgroup.Group
	group.SetLimit(scaleWorkers)
	for _, name := range names {
		group.Go(func() error { return do(name) })
	}
	return group.Wait()
}

func appNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("app-%04d", i)
	}
	return names
}
