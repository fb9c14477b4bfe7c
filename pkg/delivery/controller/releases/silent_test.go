package releases

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// A cluster is shown as silent since it was heard last, and not only when it is no longer ready.
func TestSilentSince(t *testing.T) {
	heard := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	condition := func(kind string, status metav1.ConditionStatus, reason string, at time.Time) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at)}
	}
	ready := condition(manifold.ClusterReady, metav1.ConditionTrue, "ClusterReady", heard.Add(-time.Hour))
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       time.Time
	}{
		"one that answers":          {conditions: []metav1.Condition{ready}},
		"one that has just stopped": {conditions: []metav1.Condition{ready, condition(manifold.ClusterAnswering, metav1.ConditionFalse, "NoAnswer", heard)}, want: heard},
		"one that is not ready either": {conditions: []metav1.Condition{condition(manifold.ClusterReady, metav1.ConditionUnknown, "Unreachable", heard.Add(time.Minute)),
			condition(manifold.ClusterAnswering, metav1.ConditionFalse, "NoAnswer", heard)}, want: heard},
		"one of an earlier server": {conditions: []metav1.Condition{condition(manifold.ClusterReady, metav1.ConditionUnknown, "Unreachable", heard.Add(40*time.Second))}, want: heard},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &manifold.Cluster{Status: manifold.ClusterStatus{Conditions: test.conditions}}
			if got := (clusters{grace: 40 * time.Second}).silentSince(cluster); !got.Equal(test.want) {
				t.Errorf("silent since %s, want %s", got, test.want)
			}
		})
	}
}
