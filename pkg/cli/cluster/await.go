package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// follow watches one Cluster from its present state on until seen says that it has seen enough, or timeout has passed. seen gets
// nil when the Cluster is gone. The error tells a timeout as context.DeadlineExceeded.
func (l *logical) follow(ctx context.Context, name string, timeout time.Duration, seen func(*manifoldv1alpha1.Cluster) bool) error {
	ctx, cancel := watchtools.ContextWithOptionalTimeout(ctx, timeout)
	defer cancel()
	one := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = one
			return l.clusters.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = one
			return l.clusters.Watch(ctx, options)
		},
	}, l.manifold)
	absent := func(store cache.Store) (bool, error) {
		return len(store.List()) == 0 && seen(nil), nil
	}
	_, err := watchtools.UntilWithSync(ctx, source, &manifoldv1alpha1.Cluster{}, absent, func(e watch.Event) (bool, error) {
		cluster, ok := e.Object.(*manifoldv1alpha1.Cluster)
		if !ok || e.Type == watch.Deleted {
			return seen(nil), nil
		}
		return seen(cluster), nil
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// removedMeanwhile is the reason why a cluster that is gone is not ready.
const removedMeanwhile = "it has been removed meanwhile"

// readiness returns whether a cluster is ready, and otherwise what its Ready condition says.
func readiness(cluster *manifoldv1alpha1.Cluster) (bool, string) {
	if cluster == nil {
		return false, removedMeanwhile
	}
	ready := meta.FindStatusCondition(cluster.Status.Conditions, manifoldv1alpha1.ClusterReady)
	if ready == nil {
		return false, "nobody has probed it yet"
	}
	return ready.Status == metav1.ConditionTrue, describe(*ready)
}

// describe writes a condition in one line, such as "Ready=False (Unauthorized): the credential is refused".
func describe(c metav1.Condition) string {
	text := fmt.Sprintf("%s=%s", c.Type, c.Status)
	if c.Reason != "" {
		text += fmt.Sprintf(" (%s)", c.Reason)
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}
