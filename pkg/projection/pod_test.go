package projection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// waitingPod is one that a cluster has and finds no node for.
func waitingPod(edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named("shop", "task")}
	p.Annotations = map[string]string{v1alpha1.AnnotationPodUID: "below", v1alpha1.AnnotationPodCluster: "east"}
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func TestOnlyAPodThatIsKnownToWaitMayBePlacedAnew(t *testing.T) {
	for name, test := range map[string]struct {
		in     *corev1.Pod
		fixed  bool
		runsIn string
	}{
		"one that its cluster has no node for": {in: waitingPod()},
		"one that has a node": {
			in: waitingPod(func(p *corev1.Pod) {
				delete(p.Annotations, v1alpha1.AnnotationPodCluster)
				p.Spec.NodeName = "east"
			}), fixed: true, runsIn: "east",
		},
		"one that is on its way to a cluster":      {in: waitingPod(func(p *corev1.Pod) { p.Annotations = nil }), fixed: true},
		"one that the scheduler has not looked at": {in: waitingPod(func(p *corev1.Pod) { p.Status.Conditions = nil }), fixed: true},
		"one that waits for a gate":                {in: waitingPod(func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated }), fixed: true},
		"one that has failed":                      {in: waitingPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), fixed: true},
		"one that a controller has taken over": {
			in: waitingPod(func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: ptr.To(true)}}
			}), fixed: true,
		},
		"one that its user put on a node": {in: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "west"}}, fixed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := kindOf(t, test.in).WorkloadOf(test.in)
			if err != nil || w.Fixed != test.fixed || w.RunsIn != test.runsIn || !w.Once {
				t.Errorf("fixed %t, runs in %q, once %t, %v; want %t, %q, true", w.Fixed, w.RunsIn, w.Once, err, test.fixed, test.runsIn)
			}
		})
	}
}
