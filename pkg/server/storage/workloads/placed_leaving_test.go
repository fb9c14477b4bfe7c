package workloads

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// A cluster that a decision drops is entered into the breakdown in the same write: it is leaving, and no other can say that it is.
func TestAClusterThatAnUpdateDropsIsEnteredWithTheDecision(t *testing.T) {
	const inWest = `{"west":{"replicas":3}}`
	for name, test := range map[string]struct {
		placer          placer
		status, written string // before, and by whoever updates
		replicas        int32
		want            string
	}{
		"one that has not reported yet":     {replicas: 5, want: `{"west":{"replicas":3}}`},
		"one that has, by what it reported": {status: `{"west":{"replicas":2,"ready":1}}`, replicas: 5, want: `{"west":{"replicas":2,"ready":1}}`},
		"beside others":                     {status: `{"north":{}}`, replicas: 5, want: `{"north":{},"west":{"replicas":3}}`},
		"also where it leaves for nowhere":  {placer: placer{nowhere: true}, replicas: 5, want: `{"west":{"replicas":3}}`},
		"whatever a user says":              {written: `{"south":{}}`, replicas: 5, want: `{"west":{"replicas":3}}`},
		"and none if nothing is decided":    {replicas: 3, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, "jane")
			old := deployment(3, v1alpha1.AnnotationPlacement, inWest)
			if test.status != "" {
				old.Annotations[v1alpha1.AnnotationStatus] = test.status
			}
			next := old.DeepCopy()
			next.Spec.Replicas = test.replicas
			if test.written != "" {
				next.Annotations[v1alpha1.AnnotationStatus] = test.written
			}
			placing(&test.placer).PrepareForUpdate(ctx, next, old)
			if got := next.Annotations[v1alpha1.AnnotationStatus]; got != test.want {
				t.Errorf("the breakdown is %s, want %s", got, test.want)
			}
		})
	}
}
