package mirror

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ended reports whether nothing of a pod runs any more.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Ready reports whether a pod says that it is ready.
func Ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ReasonSilent is the reason of the Ready condition of a pod that nobody hears of.
const ReasonSilent = "ClusterSilent"

// Unheard has what is shown of a pod say that it is not ready, since its cluster is silent: nobody is to be led to it who may be led elsewhere. So the stock
// controller of Nodes has it with the pods of a node. Stored is the mirror as it is, nil for a new one. What else the cluster has told stays as it was.
func Unheard(pod, stored *corev1.Pod, now time.Time) {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != corev1.PodReady || c.Status != corev1.ConditionTrue {
			continue
		}
		c.Status, c.Reason, c.Message, c.LastTransitionTime = corev1.ConditionFalse, ReasonSilent, "its cluster does not answer", metav1.NewTime(now)
		if stored == nil {
			continue
		}
		for _, before := range stored.Status.Conditions {
			if before.Type == c.Type && before.Reason == ReasonSilent {
				c.LastTransitionTime = before.LastTransitionTime
			}
		}
	}
}
