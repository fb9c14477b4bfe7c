package projection

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// pod projects a pod that a user or an operator has made. Pods that controllers make below are shown by mirrors, which are not projected.
var pod = row[corev1.Pod, *corev1.Pod]{
	resource:   corev1.SchemeGroupVersion.WithResource("pods"),
	kind:       "Pod",
	namespaced: true,
	delivered:  Contained,
	ends:       true,
	mirror: func(in *corev1.Pod) bool {
		_, mirrored := in.Annotations[v1alpha1.AnnotationCluster]
		return mirrored
	},
	carry: func(in, out *corev1.Pod) { out.Spec = in.Spec }, // what was admitted is what runs, and never becomes another one
	demand: func(in *corev1.Pod) Demand {
		demand := Demand{
			Replicas: 1,
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: in.Labels, Annotations: in.Annotations}, Spec: in.Spec},
			Division: placement.Indivisible,
			Only:     in.Spec.NodeName,
			Fixed:    !podWaits(in),
			Once:     true,
			Finished: in.Status.Phase == corev1.PodSucceeded || in.Status.Phase == corev1.PodFailed,
		}
		if in.Spec.NodeName != "" {
			demand.Arrived = 1
		}
		return demand
	},
	// Nodes of a logical cluster are clusters, and stay out of what one of them gets. What admission derives from a priority or runtime
	// class each cluster derives by itself. Containers for debugging are added by a request of their own.
	fill: func(in, out *corev1.Pod, _ Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		out.Spec.NodeName = ""
		out.Spec.Priority, out.Spec.PreemptionPolicy, out.Spec.Overhead = nil, nil, nil
		out.Spec.EphemeralContainers = nil
	},
	frozen: func(live *corev1.Pod) bool { return live.Annotations[v1alpha1.AnnotationAPIAuthority] != "" },
	keep:   keepAPI,
	once:   func(in *corev1.Pod) bool { return in.Annotations[v1alpha1.AnnotationPodUID] != "" },
}

// podWaits reports whether a pod is known to wait in a cluster that has no node for it, so that nothing of it has run. One that a controller
// there has taken over is that controller's.
func podWaits(in *corev1.Pod) bool {
	return in.Spec.NodeName == "" && in.Annotations[v1alpha1.AnnotationPodCluster] != "" && in.Status.Phase == corev1.PodPending &&
		metav1.GetControllerOfNoCopy(in) == nil && Unscheduled(in) != nil
}

// Unscheduled returns the condition by which a scheduler says that no node can run a pod; nil if it does not.
func Unscheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c
		}
	}
	return nil
}

// RunsIn returns the cluster that is known to run a pod which a user made, or to have it run, "" if none is: its scheduler has found a node
// for it. It stays there, whatever was decided meanwhile.
func RunsIn(in Object) string {
	pod, ok := in.(*corev1.Pod)
	if !ok || pod.Annotations[v1alpha1.AnnotationPodUID] == "" {
		return ""
	}
	return pod.Spec.NodeName
}
