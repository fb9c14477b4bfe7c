package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	watchtools "k8s.io/client-go/tools/watch"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/follow"
)

// follow watches one Cluster from its present state on until seen says that it has seen enough, or timeout has passed. seen gets
// nil when the Cluster is gone. The error tells a timeout as context.DeadlineExceeded.
func (l *logical) follow(ctx context.Context, name string, timeout time.Duration, seen func(*manifoldv1alpha1.Cluster) bool) error {
	ctx, cancel := watchtools.ContextWithOptionalTimeout(ctx, timeout)
	defer cancel()
	return follow.Object(ctx, l.clusters, l.manifold, &manifoldv1alpha1.Cluster{}, name, func(cluster *manifoldv1alpha1.Cluster) (bool, error) {
		return seen(cluster), nil
	})
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
