package mirror

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodThatNobodyHearsOfIsNotReadySinceThen(t *testing.T) {
	began, now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), time.Date(2026, 11, 20, 12, 1, 0, 0, time.UTC)
	pod := func(status corev1.ConditionStatus, reason string, since time.Time) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)},
		}}}
	}
	for name, test := range map[string]struct {
		pod, stored *corev1.Pod
		reason      string
		since       time.Time
	}{
		"a new one":                      {pod(corev1.ConditionTrue, "", began), nil, ReasonSilent, now},
		"one that was shown as ready":    {pod(corev1.ConditionTrue, "", began), pod(corev1.ConditionTrue, "", began), ReasonSilent, now},
		"one that is shown so already":   {pod(corev1.ConditionTrue, "", began), pod(corev1.ConditionFalse, ReasonSilent, began), ReasonSilent, began},
		"one that was not ready anyway":  {pod(corev1.ConditionFalse, "ContainersNotReady", began), nil, "ContainersNotReady", began},
		"one that was not ready earlier": {pod(corev1.ConditionTrue, "", began), pod(corev1.ConditionFalse, "ContainersNotReady", began), ReasonSilent, now},
	} {
		t.Run(name, func(t *testing.T) {
			Unheard(test.pod, test.stored, now)
			ready := test.pod.Status.Conditions[1]
			if Ready(test.pod) || ready.Reason != test.reason || !ready.LastTransitionTime.Time.Equal(test.since) {
				t.Errorf("it says %+v, want %q since %s", ready, test.reason, test.since)
			}
			if test.pod.Status.Conditions[0].Status != corev1.ConditionTrue {
				t.Error("what its cluster told of its containers has changed")
			}
		})
	}
}
