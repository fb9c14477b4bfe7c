package syncer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var webKey = identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}

func setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

func TestAStatusWaitsForThePodsThatItCounts(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(f *family) (shown *corev1.Pod) // the mirror, nil if there is none
		want    bool
	}{
		"the pod is shown as ready": {prepare: func(f *family) *corev1.Pod { return f.shown("east") }},
		"the pod is not shown yet":  {prepare: func(*family) *corev1.Pod { return nil }, want: true},
		"the pod is not shown as ready": {prepare: func(f *family) *corev1.Pod {
			shown := f.shown("east")
			setReady(shown, corev1.ConditionFalse)
			return shown
		}, want: true},
		"another pod of that name is": {prepare: func(f *family) *corev1.Pod {
			shown := f.shown("east")
			shown.UID = "earlier"
			return shown
		}, want: true},
		"the pod has ended and is not shown so": {prepare: func(f *family) *corev1.Pod {
			shown := f.shown("east")
			f.projected.Status.ReadyReplicas = 0
			setReady(f.pod, corev1.ConditionFalse)
			setReady(shown, corev1.ConditionFalse)
			f.pod.Status.Phase = corev1.PodSucceeded
			return shown
		}, want: true},
		"a pod that begins is not counted": {prepare: func(f *family) *corev1.Pod {
			f.projected.Status.ReadyReplicas = 0
			setReady(f.pod, corev1.ConditionFalse)
			return nil
		}},
		"the watch of pods is behind": {prepare: func(f *family) *corev1.Pod {
			f.projected.Status.ReadyReplicas = 2
			return f.shown("east")
		}, want: true},
		"somebody else's pod does not count": {prepare: func(f *family) *corev1.Pod {
			f.projected.Status.ReadyReplicas = 0
			f.pod.OwnerReferences[0].UID = "another"
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily()
			f.projected.Status.ReadyReplicas = 1
			setReady(f.pod, corev1.ConditionTrue)
			above := []projection.Object{f.above, f.mirrored, namespace("shop")}
			if shown := test.prepare(f); shown != nil {
				above = append(above, shown)
			}
			s := attach(t, newUpstream(t, above...), "east", f.projected, f.replicaSet, f.pod)
			if got := s.pods.AwaitShown(webKey) > 0; got != test.want {
				t.Errorf("waits: %t, want %t", got, test.want)
			}
		})
	}
}

func TestTheLastPodThatIsShownWakesTheStatus(t *testing.T) {
	f := newFamily()
	f.projected.Status.ReadyReplicas = 1
	setReady(f.pod, corev1.ConditionTrue)
	s := attach(t, newUpstream(t, f.above, f.mirrored, f.shown("east"), namespace("shop")), "east", f.projected, f.replicaSet, f.pod)
	if err := s.pods.Sync(t.Context(), podName); err != nil {
		t.Fatal(err)
	}
	if len(s.changes) > 0 {
		t.Errorf("changes %v, although nobody waits", s.changes)
	}
	f.projected.Status.ReadyReplicas = 3
	if got := s.pods.AwaitShown(webKey); got != 2 {
		t.Fatalf("%d pods are awaited, want those that the watch of pods has not shown yet", got)
	}
	for range 2 {
		if len(s.changes) > 0 {
			t.Errorf("changes %v before all are shown", s.changes)
		}
		if err := s.pods.Sync(t.Context(), podName); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.changes) != 1 || s.changes[0] != (change{webKey, true}) {
		t.Errorf("changes %v; want to be told once", s.changes)
	}
}

func TestPodsOfAStatefulSetAreItsOwn(t *testing.T) {
	e := newEstate(`{"east":{"replicas":2}}`)
	e.projected.Status = appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1}
	pod := &corev1.Pod{ObjectMeta: objectMeta("db-0")}
	setReady(pod, corev1.ConditionTrue)
	pod.OwnerReferences = controlledBy(e.projected, "StatefulSet")
	s := attach(t, newUpstream(t, e.above, namespace("shop")), "east", e.projected, pod)
	if s.pods.AwaitShown(identity.Key{Resource: statefulSetResource, Namespace: "shop", Name: "db"}) != 1 {
		t.Error("the status does not wait")
	}
}
