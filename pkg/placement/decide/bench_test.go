package decide_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

// benchClusters is how many clusters a decision is measured over; admission can afford a millisecond.
const benchClusters = 1000

// benchHeap is what a server has in use at least. A process with nothing in use would collect its garbage every ten decisions.
const benchHeap = 100 << 20

// benchCase is a request that is measured without a decision to start from, and from the one that it led to.
type benchCase struct {
	name string
	*build.RequestBuilder
}

// BenchmarkPlace decides by every strategy and every rule that a policy may have. "make bench ARGS=-placement" prints what it measures.
func BenchmarkPlace(b *testing.B) {
	s := manyClusters()
	inUse := make([]byte, benchHeap)
	defer runtime.KeepAlive(inUse)
	for _, c := range benchCases() {
		b.Run(c.name, func(b *testing.B) { benchPlace(b, s, c.Request) })
		settled := c.Request
		settled.Current = decide.Place(s, settled).Decision
		if len(settled.Current) == 0 {
			continue
		}
		b.Run(c.name+"/settled", func(b *testing.B) { benchPlace(b, s, settled) })
		grown, shrunk, lost := settled, settled, settled
		grown.Workload.Replicas *= 2
		b.Run(c.name+"/grown", func(b *testing.B) { benchPlace(b, s, grown) })
		shrunk.Workload.Replicas /= 3
		b.Run(c.name+"/shrunk", func(b *testing.B) { benchPlace(b, s, shrunk) })
		lost.Evict = map[string]bool{settled.Current.Clusters()[0]: true}
		b.Run(c.name+"/lost", func(b *testing.B) { benchPlace(b, s, lost) })
	}
}

func benchPlace(b *testing.B, s placement.Snapshot, r placement.Request) {
	var took []time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		start := time.Now()
		decide.Place(s, r)
		took = append(took, time.Since(start))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(len(took))/benchClusters, "allocs/cluster")
}

// manyClusters differ in all that decisions read: some are full, some cordoned, tainted or silent.
func manyClusters() placement.Snapshot {
	kinds := []string{"Deployment.v1.apps", "Pod.v1"}
	for i := range 60 {
		kinds = append(kinds, fmt.Sprintf("Kind%02d.v1.example.com", i))
	}
	slices.Sort(kinds)
	var clusters []placement.Cluster
	for i := range benchClusters {
		c := build.Cluster(fmt.Sprintf("cluster-%04d", i), int64(1+i%37)).In(fmt.Sprintf("region-%d", i%5), fmt.Sprintf("zone-%d", i%50)).
			Having(corev1.ResourceEphemeralStorage, 1<<40).Having("nvidia.com/gpu", int64(i%3)).Serving(kinds...)
		c.Labels = map[string]string{"provider": fmt.Sprint(i % 4), "stage": "live", "team": fmt.Sprint(i % 10)}
		c.Unschedulable = i%41 == 0
		if i%43 == 0 {
			c.Unreachable()
		}
		if i%29 == 0 {
			c.Taint("dedicated", "batch", corev1.TaintEffectNoSchedule)
		}
		if i%31 == 0 {
			c.Taint("old", "", corev1.TaintEffectPreferNoSchedule)
		}
		clusters = append(clusters, c.Cluster)
	}
	return placement.NewSnapshot(clusters)
}

func benchCases() []benchCase {
	even := func(replicas int32) *build.RequestBuilder {
		return build.Deployment(replicas).DividedBy(v1alpha1.ByEven)
	}
	none := func(*v1alpha1.PlacementPolicySpec) {}
	names := make([]string, 0, benchClusters)
	neighbours, weights := placement.Neighbours{}, map[string]int32{}
	for i := range benchClusters {
		name := fmt.Sprintf("cluster-%04d", i)
		names, neighbours[name], weights[name] = append(names, name), int64(i%7), int32(1+i%9)
	}
	cases := []benchCase{
		{"Whole", build.Deployment(3).Under(none)},
		{"Whole too large for any", build.Deployment(300).Under(none)},
		{"Together", build.Deployment(3).KeptTogether().Near(neighbours)},
		{"Together over many", build.Deployment(9000).KeptTogether().Near(neighbours)},
		{"Capacity", build.Deployment(5000).DividedBy(v1alpha1.ByCapacity)},
		{"Capacity, pinned to all", build.Deployment(5000).PinnedToAll()},
		{"Capacity, pinned anew", build.Deployment(5000).Pinned(names...).Repinned()},
		{"Capacity, more than there is", build.Deployment(50000).PinnedToAll()},
		{"Even", even(5000)},
		{"Weights", build.Deployment(5000).Weighing(weights)},
		{"Packing", build.Deployment(5000).DividedBy(v1alpha1.ByPacking)},
		{"Packing that returns", build.Deployment(5000).DividedBy(v1alpha1.ByPacking).Returning(true)},
		{"Duplicate", build.Deployment(1).Duplicated()},
		{"spread over regions", even(5000).SpreadBy("region", 1, v1alpha1.DoNotPlace)},
		{"spread over regions and zones", even(5000).SpreadBy("region", 1, v1alpha1.DoNotPlace).SpreadBy("zone", 1, v1alpha1.PlaceAnyway)},
		{"spread over clusters", even(5000).SpreadBy(v1alpha1.LabelClusterName, 1, v1alpha1.DoNotPlace)},
		{"spread, packed", build.Deployment(5000).DividedBy(v1alpha1.ByPacking).SpreadBy("region", 5, v1alpha1.DoNotPlace)},
		{"groups", even(9000).Group("30%", names[:300]...).Group("2000", names[300:600]...).Group("", names[600:]...)},
		{"groups, packed", build.Deployment(9000).DividedBy(v1alpha1.ByPacking).Group("30%", names[:300]...).Group("", names[300:]...)},
		{"groups, together", build.Deployment(9000).KeptTogether().Group("30%", names[:300]...).Group("", names[300:]...)},
		{"groups, whole", build.Deployment(3).Under(none).Group("2", names[:300]...).Group("", names[300:]...)},
		{"groups, spread", even(9000).Group("30%", names[:500]...).Group("", names[500:]...).SpreadBy("zone", 1, v1alpha1.DoNotPlace)},
		{"affinity", even(5000).Under(benchAffinity)},
		{"minReplicas", even(5000).AtLeast(6)},
		{"minReplicas, by capacity", build.Deployment(5000).DividedBy(v1alpha1.ByCapacity).AtLeast(6)},
		{"minReplicas, packed", build.Deployment(5000).DividedBy(v1alpha1.ByPacking).AtLeast(6)},
		{"minClusters and maxClusters", even(5000).OnClusters(500, 700)},
		{"minClusters, packed", build.Deployment(5000).DividedBy(v1alpha1.ByPacking).OnClusters(700, 0)},
		{"minClusters and maxClusters, spread", even(5000).OnClusters(500, 700).SpreadBy("zone", 2, v1alpha1.PlaceAnyway)},
		{"preferences", build.Deployment(5000).DividedBy(v1alpha1.ByPacking).Preferring(5, names[:500]...).Preferring(-3, names[200:900]...)},
		{"selected by label", even(5000).SelectingLabel("team", "3")},
		{"fits nowhere", build.Deployment(3).Needing(corev1.ResourceCPU, 1<<40).Under(none)},
	}
	for i := range cases {
		if c := &cases[i]; c.name == "affinity" {
			c.Others = benchOthers()
		}
	}
	return cases
}

// benchAffinity keeps a workload near to some and apart from others.
func benchAffinity(s *v1alpha1.PlacementPolicySpec) {
	weight := int32(10)
	about := func(app string) *v1alpha1.WorkloadSelector {
		return &v1alpha1.WorkloadSelector{LabelSelector: metav1.AddLabelToSelector(&metav1.LabelSelector{}, "app", app)}
	}
	s.Affinity = []v1alpha1.WorkloadAffinity{{Workloads: about("0"), Weight: &weight}}
	s.AntiAffinity = []v1alpha1.WorkloadAffinity{{Workloads: about("1")}}
}

// benchOthers are as many workloads as clusters.
func benchOthers() []placement.Other {
	var out []placement.Other
	for i := range benchClusters {
		out = append(out, placement.Other{
			Kind: "Deployment", Group: "apps", Namespace: "shop", Name: fmt.Sprintf("other-%d", i),
			Labels: map[string]string{"app": fmt.Sprint(i % 20)}, Clusters: []string{fmt.Sprintf("cluster-%04d", i)},
		})
	}
	return out
}
