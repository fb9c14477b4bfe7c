package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

func TestAJoinedClusterIsReadyWithAllThatPlacementNeeds(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	h.join("east", startBelow(t, "uid-1").kubeconfig())
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "ready")

	status := h.cluster("east").Status
	condition := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(noon)}
	}
	want := v1alpha1.ClusterStatus{
		Conditions: []metav1.Condition{
			condition("Ready", "ClusterReady", "the cluster answers and is ready"),
			condition("SyncerRunning", "SyncerRunning", "the syncer is running"),
			condition("CredentialValid", "NotRenewed", "the token does not belong to a ServiceAccount, so it is not renewed"),
		},
		UID: "uid-1", KubernetesVersion: "v1.37.1", Kinds: []string{"Pod.v1"},
		Nodes:       v1alpha1.NodeCount{Total: 2, Ready: 2},
		Capacity:    resources("cpu", "8", "memory", "16Gi", "pods", "220"),
		Allocatable: resources("cpu", "8", "memory", "16Gi", "pods", "220"),
		GrownFrom:   resources("cpu", "8", "memory", "16Gi", "pods", "220"),
		GrownAt:     &metav1.Time{Time: noon},
		Requested:   resources("cpu", "1", "memory", "0", "pods", "1"),
	}
	if !equality.Semantic.DeepEqual(status, want) {
		t.Errorf("status (-want +got):\n%s", cmp.Diff(want, status))
	}
	if writes := h.statusWrites(); writes != 1 {
		t.Errorf("a join took %d writes of status, want 1", writes)
	}

	c, err := h.manager.Registry.Get("east")
	if err != nil || c.UID != "uid-1" || c != runner.connection("east") {
		t.Errorf("connection %+v, %v, want the one that the syncer has", c, err)
	}
	if live, ok := h.manager.Registry.Requested("east"); !ok || live.Cpu().String() != "1" {
		t.Errorf("live requests %v, %v", live, ok)
	}
	lease, err := h.client.CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(t.Context(), "cluster-east", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "test" || !lease.Spec.RenewTime.Equal(&metav1.MicroTime{Time: noon}) {
		t.Errorf("lease %+v, %v", lease, err)
	}
	h.eventually("the Node is ready", 0, func() bool {
		node := h.node("east")
		return node != nil && node.Status.Conditions[0].Status == corev1.ConditionTrue && node.Labels["kubernetes.io/os"] == "linux"
	})
}

func (h *harness) node(name string) *corev1.Node {
	h.Helper()
	node, err := h.client.CoreV1().Nodes().Get(h.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.Fatal(err)
	}
	return node
}

func TestAClusterThatLeavesIsForgotten(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	h.join("east", startBelow(t, "uid-1").kubeconfig())
	h.eventually("the Node exists", 0, func() bool { return runner.connection("east") != nil && h.node("east") != nil })

	if err := h.manifold.ManifoldV1alpha1().Clusters().Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.eventually("the syncer has ended and the Node is gone", 0, func() bool {
		return runner.connection("east") == nil && h.node("east") == nil
	})
	h.eventually("the registry says that it has not joined", 0, func() bool {
		_, err := h.manager.Registry.Get("east")
		return err != nil && strings.Contains(err.Error(), "has not joined")
	})
}

func TestASilentClusterIsUnknownAfterTheGracePeriodAndComesBack(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	east, west := startBelow(t, "uid-1"), startBelow(t, "uid-2")
	h.join("east", east.kubeconfig())
	h.join("west", west.kubeconfig())
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")
	h.eventuallyReady("west", 0, metav1.ConditionTrue, health.ReasonReady, "")

	connection := runner.connection("east")
	address := east.server.Listener.Addr().String()
	east.close()
	h.eventuallyReady("east", time.Second, metav1.ConditionUnknown, health.ReasonUnreachable, "does not answer")
	ready := meta.FindStatusCondition(h.cluster("east").Status.Conditions, v1alpha1.ClusterReady)
	if silent := ready.LastTransitionTime.Sub(noon); silent < 40*time.Second {
		t.Errorf("unknown after %s of silence, want at least 40s", silent)
	}
	h.eventually("the Node is tainted", 0, func() bool {
		taints := h.node("east").Spec.Taints
		return len(taints) == 2 && taints[0].Key == v1alpha1.TaintUnreachable && taints[1].Key == v1alpha1.TaintUnreachable
	})
	if runner.connection("east") != connection {
		t.Error("the syncer was stopped by a silence")
	}
	if !status.IsReady(h.cluster("west").Status) {
		t.Error("the other cluster suffers from it")
	}
	if got := h.cluster("east").Status.Allocatable; len(got) == 0 {
		t.Error("the capacity of the silent cluster was dropped")
	}

	writes := h.statusWrites()
	for range 60 {
		h.clock.Step(time.Second)
	}
	if more := h.statusWrites() - writes; more > 0 {
		t.Errorf("%d writes while nothing changed", more)
	}
	listenAgain(t, east, address)
	h.eventuallyReady("east", time.Second, metav1.ConditionTrue, health.ReasonReady, "")
}

func TestAnotherClusterAtTheAddressGetsNoSyncer(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	east := startBelow(t, "uid-1")
	h.join("east", east.kubeconfig())
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")
	first := runner.connection("east")

	east.set(func(b *below) { b.uid = "uid-2" })
	h.eventuallyReady("east", time.Second, metav1.ConditionFalse, health.ReasonDifferentCluster, "another cluster answers")
	if runner.connection("east") != nil {
		t.Error("the syncer still works with the wrong cluster")
	}
	if _, err := h.manager.Registry.Get("east"); err == nil || !strings.Contains(err.Error(), "another cluster answers") {
		t.Errorf("the registry says %v", err)
	}
	if uid := h.cluster("east").Status.UID; uid != "uid-1" {
		t.Errorf("the cluster took over the UID %s", uid)
	}

	east.set(func(b *below) { b.uid = "uid-1" })
	h.eventuallyReady("east", time.Second, metav1.ConditionTrue, health.ReasonReady, "")
	h.eventually("a syncer runs on a new connection", 0, func() bool {
		again := runner.connection("east")
		return again != nil && again != first
	})
}

func TestAClusterThatHasJoinedUnderAnotherNameIsRefused(t *testing.T) {
	h := startManager(t, newSyncer())
	east := startBelow(t, "uid-1")
	h.join("east", east.kubeconfig())
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")
	h.join("later", east.kubeconfig())
	h.eventuallyReady("later", 0, metav1.ConditionFalse, health.ReasonDuplicate, `"east"`)
	var absent *NotConnectedError
	if _, err := h.manager.Registry.Get("later"); !errors.As(err, &absent) || !absent.Joined || absent.Cluster != "later" {
		t.Errorf("the registry says %v", err)
	}
}

func TestTroubleWithTheCredentialIsToldAndMended(t *testing.T) {
	h := startManager(t, newSyncer())
	east := startBelow(t, "uid-1")
	h.join("east", nil)
	h.eventuallyReady("east", 0, metav1.ConditionFalse, health.ReasonInvalidCredential, "cluster-east is missing; run")
	h.storeSecret("east", []byte("nonsense: ["))
	h.eventuallyReady("east", 0, metav1.ConditionFalse, health.ReasonInvalidCredential, "does not parse")
	h.storeSecret("east", east.kubeconfig())
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")

	east.set(func(b *below) { b.token = "another" })
	h.eventuallyReady("east", time.Second, metav1.ConditionFalse, health.ReasonUnauthorized, "manifold cluster join east")
	if _, err := h.manager.Registry.Get("east"); err != nil {
		t.Errorf("the connection ended: %v", err)
	}
	east.set(func(b *below) { b.token, b.readyz = token, http.StatusInternalServerError })
	h.eventuallyReady("east", time.Second, metav1.ConditionFalse, health.ReasonNotReady, "/readyz")
}

func TestASyncerThatFailsIsStartedAgainAndTheClusterSaysWhy(t *testing.T) {
	runner := newSyncer()
	runner.fail = errors.New("the namespace shop is not ours")
	h := startManager(t, runner)
	h.join("east", startBelow(t, "uid-1").kubeconfig())
	condition := func() *metav1.Condition {
		return meta.FindStatusCondition(h.cluster("east").Status.Conditions, v1alpha1.ClusterSyncerRunning)
	}
	h.eventually("the failure is told", 0, func() bool {
		h.clock.Step(h.manager.SettleTime / 100) // less than the delay before the next start, as a whole
		c := condition()
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "the namespace shop is not ours") ||
			runner.connection("east") != nil
	})
	h.eventually("the syncer runs", time.Second, func() bool {
		c := condition()
		return c != nil && c.Status == metav1.ConditionTrue
	})
	if runner.starts != 2 {
		t.Errorf("%d starts, want 2", runner.starts)
	}
}

func everything() *authorizationv1.SubjectRulesReviewStatus {
	all := []string{"*"}
	return &authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
}

func TestASyncerWithoutItsRightsSaysSoAndBeginsWhenItHasThem(t *testing.T) {
	runner := newSyncer()
	runner.waits = true
	h := startManager(t, runner)
	east := startBelow(t, "uid-1")
	east.review = everything()
	east.review.ResourceRules[0].APIGroups = []string{"", "batch", "networking.k8s.io", "policy", "apiextensions.k8s.io", "metrics.k8s.io", "node.k8s.io"}
	h.join("east", east.kubeconfig())
	told := func(status metav1.ConditionStatus, words ...string) func() bool {
		return func() bool {
			c := meta.FindStatusCondition(h.cluster("east").Status.Conditions, v1alpha1.ClusterSyncerRunning)
			return c != nil && c.Status == status && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(c.Reason+": "+c.Message, w) })
		}
	}
	h.eventually("it says what is missing", time.Second, told(metav1.ConditionFalse,
		"RightsMissing: ", "get,list,watch,create,update,patch,delete deployments.apps", "get,list,watch priorityclasses.scheduling.k8s.io",
		"manifold cluster join east --cluster-kubeconfig FILE"))
	if runner.connection("east") != nil {
		t.Error("it counts as running")
	}

	east.set(func(b *below) { b.review = everything() })
	h.eventually("it runs", time.Second, told(metav1.ConditionTrue, "SyncerRunning: "))

	// One that was joined by an earlier version goes on, and says that it has more than it needs.
	east.set(func(b *below) { b.excess = true })
	h.eventually("it says what is too much", time.Minute, told(metav1.ConditionTrue, "RightsExcess: ", "the syncer is running", "list the secrets of all namespaces",
		"manifold cluster join east --cluster-kubeconfig FILE"))
	east.set(func(b *below) { b.excess = false })
	h.eventually("it has been joined again", time.Minute, told(metav1.ConditionTrue, "SyncerRunning: "))

	// What it has begun goes on without a right that is taken later.
	east.set(func(b *below) {
		b.review = everything()
		b.review.NonResourceRules = nil
	})
	h.eventually("it says what is missing and goes on", time.Minute, told(metav1.ConditionTrue, "RightsMissing: ", "the syncer is running", "get /version"))
	runner.mu.Lock()
	defer runner.mu.Unlock()
	if runner.starts != 2 {
		t.Errorf("%d starts, want 2", runner.starts)
	}
}

func TestABurstOfPodsTakesFewWrites(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	h.join("east", startBelow(t, "uid-1").kubeconfig())
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")
	before, began := h.statusWrites(), h.clock.Now()
	usage := runner.connection("east").Usage
	for i := range 1000 {
		usage.PodChanged(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}, resources("cpu", "1m"), 0, true)
		if i%50 == 0 {
			h.clock.Step(100 * time.Millisecond)
		}
	}
	h.eventually("the status has caught up", 100*time.Millisecond, func() bool {
		requested := h.cluster("east").Status.Requested
		return requested.Cpu().String() == "2" && requested.Pods().Value() == 1001
	})
	allowed := int(h.clock.Since(began)/h.manager.StatusInterval) + 1
	if writes := h.statusWrites() - before; writes > allowed {
		t.Errorf("%d writes, want at most %d in %s", writes, allowed, h.clock.Since(began))
	}
}

func TestRunWaitsForTheSyncers(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	h.join("east", startBelow(t, "uid-1").kubeconfig())
	h.eventually("the syncer runs", 0, func() bool { return runner.connection("east") != nil })
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	if runner.connection("east") != nil {
		t.Error("the syncer still ran after Run had returned")
	}
}

func TestARegistryBeforeTheFirstLookDoesNotSayThatAClusterHasNotJoined(t *testing.T) {
	if _, err := NewRegistry().Get("east"); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("got %v", err)
	}
}
