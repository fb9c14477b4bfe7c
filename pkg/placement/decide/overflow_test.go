package decide_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

// bounded are clusters of 100 cores each, of which placement may use so many on east, once a workload of one core for each replica runs
// as decided.
func bounded(onEast int64, d placement.Decision) placement.Snapshot {
	var clusters []placement.Cluster
	for _, name := range []string{"east", "west"} {
		c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue}}
		c.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourcePods: resource.MustParse("1000"),
		}
		if name == "east" {
			c.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(onEast, resource.DecimalSI)}
		}
		placed := placement.Resources{}
		placed.Add(placement.Resources{corev1.ResourceCPU: 1000, corev1.ResourcePods: 1}, int64(d[name].Replicas))
		clusters = append(clusters, placement.Observe(c, placement.Load{Placed: placed.Amounts(), Assumed: placed.Amounts()}))
	}
	return placement.NewSnapshot(clusters)
}

// A workload of three replicas runs on east, where placement may use four cores. It grows to six; then the bound is raised to eight.
func TestWhatGrowsPastABoundOverflowsAndMayReturn(t *testing.T) {
	inGroups := func(b *build.RequestBuilder) { b.Group("", "east").Group("", "west").DividedBy(v1alpha1.ByPacking) }
	for name, test := range map[string]struct {
		under         func(*build.RequestBuilder)
		grown, raised placement.Decision
	}{
		"kept together, it overflows and stays": {
			under: func(b *build.RequestBuilder) { b.KeptTogether().Near(placement.Neighbours{"east": 5}) },
			grown: build.Shares("east", 4, "west", 2), raised: build.Shares("east", 4, "west", 2),
		},
		"kept together and asked to return, it does": {
			under: func(b *build.RequestBuilder) { b.KeptTogether().Near(placement.Neighbours{"east": 5}).Returning(true) },
			grown: build.Shares("east", 4, "west", 2), raised: build.Shares("east", 6),
		},
		"pinned to both, it overflows and stays": {
			under: func(b *build.RequestBuilder) { b.Pinned("east", "west") },
			grown: build.Shares("east", 3, "west", 3), raised: build.Shares("east", 3, "west", 3),
		},
		"pinned to all, it overflows as well": {
			under: func(b *build.RequestBuilder) { b.PinnedToAll() },
			grown: build.Shares("east", 3, "west", 3), raised: build.Shares("east", 3, "west", 3),
		},
		"pinned to one, it waits there": {
			under: func(b *build.RequestBuilder) { b.Pinned("east") },
			grown: build.Shares("east", 6), raised: build.Shares("east", 6),
		},
		"in groups it overflows to the next, and returns": {
			under: inGroups, grown: build.Shares("east", 4, "west", 2), raised: build.Shares("east", 6),
		},
		"unless it is asked to stay": {
			under: func(b *build.RequestBuilder) { inGroups(b); b.Returning(false) },
			grown: build.Shares("east", 4, "west", 2), raised: build.Shares("east", 4, "west", 2),
		},
		"packed, it overflows and stays": {
			under: func(b *build.RequestBuilder) { b.DividedBy(v1alpha1.ByPacking) },
			grown: build.Shares("east", 4, "west", 2), raised: build.Shares("east", 4, "west", 2),
		},
		"packed and asked to return, it does": {
			under: func(b *build.RequestBuilder) { b.DividedBy(v1alpha1.ByPacking).Returning(true) },
			grown: build.Shares("east", 4, "west", 2), raised: build.Shares("east", 6),
		},
		"an even division goes by its rule as far as there is room": {
			under: func(b *build.RequestBuilder) { b.Weighing(map[string]int32{"east": 5, "west": 1}) },
			grown: build.Shares("east", 4, "west", 2), raised: build.Shares("east", 5, "west", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := build.Deployment(6).On(build.Shares("east", 3))
			test.under(b)
			grown := decide.Place(bounded(4, b.Current), b.Request)
			if !grown.Decision.Equal(test.grown) {
				t.Fatalf("grown it is on %s, want %s: %s", grown.Decision, test.grown, grown.Message())
			}
			if again := decide.Place(bounded(4, grown.Decision), b.On(grown.Decision).Request); !again.Decision.Equal(test.grown) {
				t.Errorf("then it moves to %s", again.Decision)
			}
			if raised := decide.Place(bounded(8, grown.Decision), b.On(grown.Decision).Request); !raised.Decision.Equal(test.raised) {
				t.Errorf("with more room it is on %s, want %s: %s", raised.Decision, test.raised, raised.Message())
			}
		})
	}
}
