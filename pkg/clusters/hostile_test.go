package clusters

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// hoarder is a syncer that finds so many pods in a cluster.
type hoarder struct {
	*syncer
	pods map[string]*atomic.Int64
}

func (h hoarder) Run(ctx context.Context, c *connection.Connection) error {
	gate := c.Budget.Gate()
	defer gate.Close()
	keep := gate.Transform(nil)
	for i := range h.pods[c.Name].Load() {
		if _, err := keep(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i)}}); err != nil {
			<-ctx.Done() // as an informer that is not through with its list
			return ctx.Err()
		}
	}
	return h.syncer.Run(ctx, c)
}

func TestAClusterThatHasTooMuchSaysSoAndHarmsNoOther(t *testing.T) {
	runner := hoarder{newSyncer(), map[string]*atomic.Int64{"east": {}, "west": {}}}
	h := startManager(t, runner)
	h.manager.MaxObjects = 100
	runner.pods["east"].Store(101)
	runner.pods["west"].Store(90)
	h.join("east", startBelow(t, "uid-1").kubeconfig())
	h.join("west", startBelow(t, "uid-2").kubeconfig())

	h.eventuallyReady("east", time.Second, metav1.ConditionFalse, health.ReasonBounds, "more than 100 objects")
	h.eventually("its syncer says what to do", time.Second, func() bool {
		syncing := meta.FindStatusCondition(h.cluster("east").Status.Conditions, v1alpha1.ClusterSyncerRunning)
		return syncing != nil && syncing.Status == metav1.ConditionFalse && syncing.Reason == health.ReasonBounds &&
			strings.Contains(syncing.Message, "raise the flag --max-cluster-objects")
	})
	h.eventuallyReady("west", time.Second, metav1.ConditionTrue, health.ReasonReady, "")
	if runner.connection("west") == nil || runner.connection("east") != nil {
		t.Error("west's syncer does not run, or east's does")
	}

	runner.pods["east"].Store(90)
	h.eventuallyReady("east", time.Second, metav1.ConditionTrue, health.ReasonReady, "")
	if runner.connection("east") == nil {
		t.Error("east's syncer does not run though there is room now")
	}
	h.eventually("nothing is told any more", 10*time.Second, func() bool {
		syncing := meta.FindStatusCondition(h.cluster("east").Status.Conditions, v1alpha1.ClusterSyncerRunning)
		return syncing != nil && syncing.Reason == "SyncerRunning"
	})
}

// Nodes are counted as well, and an answer that is too long is told while all else goes on.
func TestAnswersBeyondABoundAreTold(t *testing.T) {
	east := startBelow(t, "uid-1")
	east.set(func(b *below) {
		node := belowNode("n3")
		node.Annotations = map[string]string{"x": strings.Repeat("x", 33<<20)}
		b.nodes = append(b.nodes, node)
	})
	h := startManager(t, newSyncer())
	h.join("east", east.kubeconfig())
	h.eventually("the list of nodes is told of", time.Second, func() bool {
		syncing := meta.FindStatusCondition(h.cluster("east").Status.Conditions, v1alpha1.ClusterSyncerRunning)
		return syncing != nil && syncing.Status == metav1.ConditionTrue && syncing.Reason == health.ReasonBounds &&
			strings.Contains(syncing.Message, "a list, or a page of one, of more than 32Mi")
	})
	if ready := status.ReadyOf(h.cluster("east").Status); ready == nil || ready.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %+v, want True: the syncer sees what runs", ready)
	}
}
