package syncer

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/mirror"
)

func TestNobodyIsLedToThePodsOfASilentClusterUntilItIsHeardAgain(t *testing.T) {
	f := newFamily()
	f.projected.Status.ReadyReplicas = 1
	setReady(f.pod, corev1.ConditionTrue)
	u := newUpstream(t, f.above, f.mirrored, f.shown("east"), namespace("shop"))
	s := attach(t, u, "east", f.projected, f.replicaSet, f.pod)
	var written []*corev1.Pod
	s.above.PrependReactor("update", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.UpdateAction).GetObject().(*corev1.Pod).DeepCopy()
		written = append(written, pod)
		pod.UID, pod.ResourceVersion = f.pod.UID, strconv.Itoa(10+len(written))
		for _, key := range []string{v1alpha1.AnnotationUID, v1alpha1.AnnotationCreated, v1alpha1.AnnotationGeneration} {
			delete(pod.Annotations, key) // as the API server does
		}
		return true, pod, nil
	})
	is := func(status metav1.ConditionStatus) *v1alpha1.Cluster {
		return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Status: v1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: status}},
		}}
	}
	now := metav1.ConditionTrue
	s.Unheard = func(cluster string) bool { return cluster == "east" && now == metav1.ConditionUnknown }

	for i, step := range []struct {
		next   metav1.ConditionStatus
		looks  int
		writes int
		ready  bool
	}{
		{metav1.ConditionFalse, 0, 0, true}, // it answers that it is not ready, and its pods are there
		{metav1.ConditionUnknown, 1, 1, false},
		{metav1.ConditionUnknown, 0, 0, false},
		{metav1.ConditionTrue, 1, 1, true},
	} {
		before := len(written)
		last := is(now)
		now = step.next
		u.router.ClusterChanged(last, is(now))
		if got := s.pods.Queue.Len(); got != step.looks {
			t.Errorf("step %d: %d pods are looked at, want %d", i, got, step.looks)
		}
		for s.pods.Queue.Len() > 0 {
			name, _ := s.pods.Queue.Get()
			s.pods.Queue.Done(name)
		}
		if err := s.pods.Sync(t.Context(), podName); err != nil {
			t.Fatal(err)
		}
		if got := len(written) - before; got != step.writes {
			t.Errorf("step %d: %d writes, want %d", i, got, step.writes)
		}
		if shown := s.pods.Named(podName); mirror.Ready(shown) != step.ready {
			t.Errorf("step %d: it is shown with %+v", i, shown.Status.Conditions)
		}
		if s.pods.AwaitShown(webKey) > 0 {
			t.Errorf("step %d: the status of the workload waits for the pod to be shown otherwise", i)
		}
	}
	if c := written[0].Status.Conditions[0]; c.Reason != mirror.ReasonSilent || c.LastTransitionTime.IsZero() {
		t.Errorf("nothing tells why it is not ready: %+v", c)
	}
}
