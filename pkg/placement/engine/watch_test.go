package engine

import (
	"cmp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestEligibilityChanges(t *testing.T) {
	for name, test := range map[string]struct {
		before metav1.ConditionStatus // True if empty
		change func(c *v1alpha1.Cluster)
		want   bool
	}{
		"with readiness": {change: func(c *v1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown }, want: true},
		"with a silence after trouble": {
			before: metav1.ConditionFalse, change: func(c *v1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown }, want: true,
		},
		"with since when it is silent": {
			before: metav1.ConditionUnknown, change: func(c *v1alpha1.Cluster) { c.Status.Conditions[0].LastTransitionTime = metav1.Now() }, want: true,
		},
		"with labels":                   {change: func(c *v1alpha1.Cluster) { c.Labels = map[string]string{"zone": "a"} }, want: true},
		"with where its nodes are":      {change: func(c *v1alpha1.Cluster) { c.Status.Topology = map[string]string{"zone": "a"} }, want: true},
		"with a deletion":               {change: func(c *v1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{} }, want: true},
		"with the manner of a deletion": {change: func(c *v1alpha1.Cluster) { c.Annotations = map[string]string{v1alpha1.AnnotationRemove: "force"} }, want: true},
		"with a cordon":                 {change: func(c *v1alpha1.Cluster) { c.Spec.Unschedulable = true }, want: true},
		"with taints":                   {change: func(c *v1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "gpu"}} }, want: true},
		"with limits": {change: func(c *v1alpha1.Cluster) {
			c.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}, want: true},
		"not with what is requested there": {change: func(c *v1alpha1.Cluster) {
			c.Status.Requested = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}},
		"not with a heartbeat": {change: func(c *v1alpha1.Cluster) { c.ResourceVersion = "8" }},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := joined("east", 9), joined("east", 9)
			for _, c := range []*v1alpha1.Cluster{before, after} {
				c.Status.Conditions[0].Status = cmp.Or(test.before, metav1.ConditionTrue)
			}
			test.change(after)
			if got := EligibilityChanged(before, after); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
