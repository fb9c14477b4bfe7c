package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/hack/stock"
)

// How soon an application is to show what has happened to it, in seconds.
const (
	driftShown   = 2
	silenceShown = 10
)

const (
	// drifts are how many applications are changed behind the back of delivery, one after another.
	drifts = 5
	// looking is how often an application is read that is about to show something.
	looking = 20 * time.Millisecond
	// anotherImage is what somebody changes.
	anotherImage = `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"changed:1"}]`
)

// measureSight measures how soon applications show that an object of theirs was changed, and that a cluster does not answer. The last of their targets is
// in the cluster.
func measureSight(ctx context.Context, work *workshop, names []string, cluster *stock.Cluster, report *deliveryReport) (err error) {
	names = names[:min(len(names), drifts)]
	var took []float64
	for _, name := range names {
		_, err := work.shows(ctx, name, "is what was released", func(app *v1alpha1.Application) bool {
			return meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ApplicationInSync)
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "bench: change the Deployment of %s\n", name)
		if _, err := work.client.AppsV1().Deployments(deliveryNamespace).Patch(ctx, name, types.JSONPatchType, []byte(anotherImage), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("change Deployment %q: %w", name, err)
		}
		after, err := work.shows(ctx, name, "shows its drift", func(app *v1alpha1.Application) bool { return app.Status.DriftCount > 0 })
		if err != nil {
			return err
		}
		took = append(took, after)
	}
	report.bound(driftShown, "s", slices.Max(took), "drift is shown, the latest of %d", len(took))

	fmt.Fprintf(os.Stderr, "bench: halt cluster %s\n", cluster.Name())
	defer func() { err = errors.Join(err, cluster.ResumeAll()) }()
	if err := cluster.PauseAll(); err != nil {
		return err
	}
	after, err := work.shows(ctx, names[0], "shows that the cluster does not answer", func(app *v1alpha1.Application) bool {
		targets := app.Status.Targets
		return len(targets) > 0 && targets[len(targets)-1].Sync == v1alpha1.SyncUnknown
	})
	if err != nil {
		return err
	}
	report.bound(silenceShown, "s", after, "a cluster that halts is shown as unknown")
	return nil
}

// shows waits until an application shows something, and returns how many seconds that took.
func (w *workshop) shows(ctx context.Context, name, what string, is func(*v1alpha1.Application) bool) (float64, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, looking, true, func(ctx context.Context) (bool, error) {
		app, err := w.manifold.DeliveryV1alpha1().Applications(deliveryNamespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && is(app), err
	})
	if err != nil {
		return 0, fmt.Errorf("wait until Application %q %s: %w", name, what, err)
	}
	return time.Since(begin).Seconds(), nil
}
