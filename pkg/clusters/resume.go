package clusters

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// Resume takes the time that nobody listened off the silence of clusters, and gives them as much again to be heard, up to the grace period.
// It is for the start of the process, before anything is decided by the silence: a cluster that was silent when the last process ended may
// have been well for hours, and workloads leave it once they have tolerated a silence, not once they have tolerated that nobody listened.
// What was endured before counts on, so that a process that is started again and again does not wait for ever.
func Resume(ctx context.Context, client kubernetes.Interface, manifold versioned.Interface, grace time.Duration, now time.Time) error {
	leases, err := client.CoordinationV1().Leases(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read when clusters were heard: %w", err)
	}
	all, err := manifold.ManifoldV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the clusters: %w", err)
	}
	alive := lastAlive(leases.Items, all.Items)
	for i := range all.Items {
		cluster := &all.Items[i]
		ready := status.ReadyOf(cluster.Status)
		if ready == nil || ready.Status != metav1.ConditionUnknown {
			continue
		}
		since := resumed(ready.LastTransitionTime.Time, alive, now, grace)
		if !since.After(ready.LastTransitionTime.Time) {
			continue
		}
		ready.LastTransitionTime = metav1.NewTime(since)
		_, err := manifold.ManifoldV1alpha1().Clusters().UpdateStatus(ctx, cluster, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("take the time that nobody listened off the silence of cluster %q: %w", cluster.Name, err)
		}
	}
	return nil
}

// lastAlive is the last time of which something tells that the process ran: a cluster was heard, or a condition changed.
func lastAlive(leases []coordinationv1.Lease, all []v1alpha1.Cluster) (last time.Time) {
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for i := range leases {
		if renewed := leases[i].Spec.RenewTime; renewed != nil && strings.HasPrefix(leases[i].Name, leaseNamePrefix) {
			later(renewed.Time)
		}
	}
	for i := range all {
		for _, condition := range all[i].Status.Conditions {
			later(condition.LastTransitionTime.Time)
		}
	}
	return last
}

// resumed returns since when a cluster counts as silent, which has been that since a time, according to a process that ran last when it was
// last alive.
func resumed(since, alive, now time.Time, grace time.Duration) time.Time {
	if alive.After(now) {
		alive = now // a clock that was put back
	}
	unheard := now.Sub(alive)
	if since = since.Add(unheard + min(unheard, grace)); since.After(now) {
		return now
	}
	return since
}
