package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// preempting lets everything take room of lower priority.
func preempting() *v1alpha1.ClusterPlacementPolicy {
	p := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "rule"}}
	p.Spec.PreemptionPolicy = corev1.PreemptLowerPriority
	p.Spec.Division = &v1alpha1.Division{Type: v1alpha1.Divide}
	return p
}

// wanting is a Deployment of a priority that wants so many cores for its one replica.
func wanting(name, class, cores string) *appsv1.Deployment {
	d := deployment(name)
	d.Spec.Replicas = ptr.To[int32](1)
	d.Spec.Template.Spec.PriorityClassName = class
	d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cores)
	return d
}

func requesting(c *v1alpha1.Cluster, cores string) *v1alpha1.Cluster {
	c.Status.Requested = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)}
	return c
}

// told are the events that were sent so far.
type told struct {
	*harness
	events []string
}

// await returns the first event that begins so.
func (e *told) await(t *testing.T, begins string) string {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		if i := slices.IndexFunc(e.events, func(event string) bool { return strings.HasPrefix(event, begins) }); i >= 0 {
			return e.events[i]
		}
		select {
		case event := <-e.recorder.Events:
			e.events = append(e.events, event)
		case <-late:
			t.Fatalf("events %q, none begins with %q", e.events, begins)
		}
	}
}

// What is displaced moves before the room is taken, and what cannot move is told.
func TestMakesRoomBeforeItIsTaken(t *testing.T) {
	low := deployment("low", v1alpha1.AnnotationPlacement, `{"east":{"replicas":4}}`, v1alpha1.AnnotationStatus, `{"east":{"replicas":4}}`)
	low.Spec.Replicas = ptr.To[int32](4)
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}
	east := requesting(joined("east", 4), "4")
	h := start(t, east, joined("west", 2), preempting(), high, low, wanting("web", "high", "3"))
	events := &told{harness: h}
	h.run(t)

	waits := events.await(t, "Warning Unplaced")
	if want := "1 replica waits for room on east until replicas of Deployment shop/low, which has a lower priority, run elsewhere"; !strings.HasSuffix(waits, want) {
		t.Errorf("event %q, want %q", waits, want)
	}
	h.await(t, "low", `{"east":{"replicas":2},"west":{"replicas":2}}`)
	moves := events.await(t, "Normal Displaced")
	if want := `moved off cluster "east", which makes room for Deployment shop/web, which has a higher priority`; !strings.HasSuffix(moves, want) {
		t.Errorf("event %q, want %q", moves, want)
	}
	h.await(t, "web", "")

	// Two have left east, and serve in west: clusters tell that before it is known of the workload.
	for _, c := range []*v1alpha1.Cluster{requesting(east.DeepCopy(), "2"), requesting(joined("west", 2), "2")} {
		if _, err := h.manifold.ManifoldV1alpha1().Clusters().Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	err := wait.PollUntilContextTimeout(h.ctx, 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		probe := placement.Workload{Namespace: "shop", Name: "probe", Replicas: 1, Requests: placement.Resources{corev1.ResourceCPU: 9000}}
		result, _ := h.Engine.Place(probe, nil)
		free := map[string]int64{}
		for _, v := range result.Verdicts {
			for _, reason := range v.Reasons {
				free[v.Cluster] = reason.Free
			}
		}
		return free["east"] <= 0 && free["west"] < 0, nil // booked, and counted both as coming and as there
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := h.kube.AppsV1().Deployments("shop").Get(t.Context(), "low", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Annotations[v1alpha1.AnnotationStatus] = `{"east":{"replicas":2},"west":{"replicas":2}}`
	if _, err := h.kube.AppsV1().Deployments("shop").Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.await(t, "web", `{"east":{"replicas":1}}`)
	stopped := events.await(t, "Warning Preempted")
	if want := "Deployment shop/web of priority 100 takes the room of 1 replica of priority 0 on east, which cannot run elsewhere; "; !strings.Contains(stopped, want) {
		t.Errorf("event %q, want %q", stopped, want)
	}
	h.await(t, "low", `{"east":{"replicas":2},"west":{"replicas":2}}`)
	if others := h.events(); slices.ContainsFunc(others, func(e string) bool { return strings.Contains(e, "Preempted") }) {
		t.Errorf("told again: %q", others)
	}
}

// What has moved out of the way might return, if nobody knew any more who waits.
func TestWaitsAgainAfterAStartBeforeOthersReturn(t *testing.T) {
	low := deployment("low", v1alpha1.AnnotationPlacement, `{"west":{"replicas":2}}`, v1alpha1.AnnotationStatus, `{"east":{"replicas":1},"west":{"replicas":2}}`)
	web := wanting("web", "high", "3")
	web.Annotations[v1alpha1.AnnotationClusters] = "east"
	rule := preempting()
	rule.Spec.Return = ptr.To(true)
	rule.Spec.Groups = []v1alpha1.ClusterGroup{{Name: "first", ClusterSelector: v1alpha1.ClusterSelector{Names: []string{"east"}}}, {Name: "second"}}
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}
	h := start(t, requesting(joined("east", 4), "2"), requesting(joined("west", 4), "2"), rule, high, low, web)
	h.bookAgain()
	if err := h.sync(t.Context(), named("low")); err != nil {
		t.Fatal(err)
	}
	if patches := h.patches(); len(patches) > 0 {
		t.Errorf("low returns: %v", patches)
	}
}
