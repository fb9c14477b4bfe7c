package clusters

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// Who shows what runs in a cluster learns within ten seconds that it does not answer. What follows from silence waits for the grace period.
func TestAClusterThatHaltsIsKnownToBeforeItsGraceIsOver(t *testing.T) {
	east := startBelow(t, "uid-1")
	h := startManager(t, newSyncer())
	h.join("east", east.kubeconfig())
	answers := func() bool {
		return meta.FindStatusCondition(h.cluster("east").Status.Conditions, v1alpha1.ClusterAnswering) == nil
	}
	h.eventually("the cluster is ready", 10*time.Millisecond, func() bool { return status.IsReady(h.cluster("east").Status) && answers() })
	halted := make(chan struct{})
	east.set(func(b *below) { b.halted = halted })
	began := h.clock.Now()
	h.eventually("it is told that the cluster does not answer", 5*time.Millisecond, func() bool { return !answers() })
	if since := h.clock.Since(began); since > 15*time.Second || !status.IsReady(h.cluster("east").Status) {
		t.Errorf("told after %s, and conditions are %+v; want it to be ready still", since, h.cluster("east").Status.Conditions)
	}
	east.set(func(b *below) { b.halted = nil })
	close(halted)
	h.eventually("it answers", 10*time.Millisecond, answers)
}
