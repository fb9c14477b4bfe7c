package projection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestOrphans(t *testing.T) {
	now := &metav1.Time{}
	latched := map[string]string{v1alpha1.AnnotationOrphan: "true"}
	for name, test := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"one that is deleted so":                   {metav1.ObjectMeta{DeletionTimestamp: now, Finalizers: []string{"a", "orphan"}}, true},
		"and the collector is done above":          {metav1.ObjectMeta{DeletionTimestamp: now, Annotations: latched}, true},
		"not one that is deleted with what it has": {metav1.ObjectMeta{DeletionTimestamp: now, Finalizers: []string{"foregroundDeletion"}}, false},
		"not one that nobody deletes":              {metav1.ObjectMeta{Finalizers: []string{"orphan"}, Annotations: latched}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Orphans(&corev1.Pod{ObjectMeta: test.meta}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
