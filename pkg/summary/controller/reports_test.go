package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// A cluster that is away must not keep the status of everything that follows workloads as it is.
func TestWhatFollowsWorkloadsWaitsForClustersThatMayHoldIt(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, at time.Time) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(at)}
	}
	earlier, later := now.Add(-time.Hour), now.Add(time.Hour)
	const inEast = `{"east":{"replicas":3}}`
	for name, test := range map[string]struct {
		conditions          []metav1.Condition
		decision, breakdown string
		want                bool
	}{
		"a cluster that nothing is known of yet":      {decision: inEast},
		"one that what needs it is leaving":           {decision: `{"west":{"replicas":3}}`, breakdown: inEast},
		"one that nothing which needs it was ever in": {decision: `{"west":{"replicas":3}}`, breakdown: `{"west":{}}`, want: true},
		"one that is ready and has not been asked yet": {
			[]metav1.Condition{condition(v1alpha1.ClusterReady, metav1.ConditionTrue, earlier)}, inEast, "", false,
		},
		"one that has been silent since before": {
			[]metav1.Condition{condition(v1alpha1.ClusterReady, metav1.ConditionUnknown, earlier)}, inEast, "", true,
		},
		"one that fell silent since": {
			[]metav1.Condition{condition(v1alpha1.ClusterReady, metav1.ConditionUnknown, later)}, inEast, "", false,
		},
		"one whose syncer has lacked rights since before": {
			[]metav1.Condition{
				condition(v1alpha1.ClusterReady, metav1.ConditionTrue, earlier), condition(v1alpha1.ClusterSyncerRunning, metav1.ConditionFalse, earlier),
			}, inEast, "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			east := cluster("east", "")
			east.Status.Conditions = test.conditions
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: metav1.NewTime(now)}}
			service.Spec.Selector = map[string]string{"app": "web"}
			web := deployment(test.decision, test.breakdown)
			web.Spec.Template.Labels = service.Spec.Selector
			h := start(t, east, service, web)
			key := identity.Key{Resource: corev1.SchemeGroupVersion.WithResource("services"), Namespace: "shop", Name: "web"}
			if _, complete := h.otherReports(key, service); complete != test.want {
				t.Errorf("complete without it: %t, want %t", complete, test.want)
			}
		})
	}
}
