package placement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// BenchmarkPlace decides over 1,000 clusters; admission can afford a millisecond.
func BenchmarkPlace(b *testing.B) {
	var clusters []Cluster
	for i := range 1000 {
		clusters = append(clusters, cluster(fmt.Sprintf("cluster-%04d", i), int64(1+i%37)).
			free(corev1.ResourceEphemeralStorage, 1<<40).label("zone", fmt.Sprint(i%3)).serving("Deployment.v1.apps", "Pod.v1").Cluster)
	}
	s := NewSnapshot(clusters)
	current := Place(s, deployment(500).pinnedToAll().Request).Decision
	for name, req := range map[string]*requestBuilder{
		"whole":     deployment(3).under(func(*v1alpha1.PlacementPolicySpec) {}),
		"together":  deployment(3).keptTogether(),
		"overflow":  deployment(3000).keptTogether(),
		"duplicate": deployment(3).duplicated(),
		"even":      deployment(5000).dividedBy(v1alpha1.ByEven),
		"capacity":  deployment(5000).pinnedToAll(),
		"grown":     deployment(900).pinnedToAll().on(current),
		"shrunk":    deployment(100).pinnedToAll().on(current),
		"infeasible": deployment(3).needing(corev1.ResourceCPU, 1<<40).
			selectingLabel("zone", "1"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				Place(s, req.Request)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
