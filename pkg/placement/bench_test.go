package placement

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// benchClusters is how many clusters a decision is measured over; admission can afford a millisecond.
const benchClusters = 1000

// benchHeap is what a server has in use at least. A process with nothing in use would collect its garbage every ten decisions.
const benchHeap = 100 << 20

// benchCase is a request that is measured without a decision to start from, and from the one that it led to.
type benchCase struct {
	name string
	*requestBuilder
}

// BenchmarkPlace decides by every strategy and every rule that a policy may have. "make bench ARGS=-placement" prints what it measures.
func BenchmarkPlace(b *testing.B) {
	s := manyClusters()
	inUse := make([]byte, benchHeap)
	defer runtime.KeepAlive(inUse)
	for _, c := range benchCases() {
		b.Run(c.name, func(b *testing.B) { benchPlace(b, s, c.Request) })
		settled := c.Request
		settled.Current = Place(s, settled).Decision
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

func benchPlace(b *testing.B, s Snapshot, r Request) {
	var took []time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		start := time.Now()
		Place(s, r)
		took = append(took, time.Since(start))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(len(took))/benchClusters, "allocs/cluster")
}

// manyClusters differ in all that decisions read: some are full, some cordoned, tainted or silent.
func manyClusters() Snapshot {
	kinds := []string{"Deployment.v1.apps", "Pod.v1"}
	for i := range 60 {
		kinds = append(kinds, fmt.Sprintf("Kind%02d.v1.example.com", i))
	}
	slices.Sort(kinds)
	var clusters []Cluster
	for i := range benchClusters {
		c := cluster(fmt.Sprintf("cluster-%04d", i), int64(1+i%37)).in(fmt.Sprintf("region-%d", i%5), fmt.Sprintf("zone-%d", i%50)).
			free(corev1.ResourceEphemeralStorage, 1<<40).free("nvidia.com/gpu", int64(i%3)).serving(kinds...)
		c.Labels = map[string]string{"provider": fmt.Sprint(i % 4), "stage": "live", "team": fmt.Sprint(i % 10)}
		c.Unschedulable = i%41 == 0
		if i%43 == 0 {
			c.unreachable()
		}
		if i%29 == 0 {
			c.taint("dedicated", "batch", corev1.TaintEffectNoSchedule)
		}
		if i%31 == 0 {
			c.taint("old", "", corev1.TaintEffectPreferNoSchedule)
		}
		clusters = append(clusters, c.Cluster)
	}
	return NewSnapshot(clusters)
}

func benchCases() []benchCase {
	even := func(replicas int32) *requestBuilder { return deployment(replicas).dividedBy(v1alpha1.ByEven) }
	none := func(*v1alpha1.PlacementPolicySpec) {}
	names := make([]string, 0, benchClusters)
	neighbours, weights := Neighbours{}, map[string]int32{}
	for i := range benchClusters {
		name := fmt.Sprintf("cluster-%04d", i)
		names, neighbours[name], weights[name] = append(names, name), int64(i%7), int32(1+i%9)
	}
	cases := []benchCase{
		{"Whole", deployment(3).under(none)},
		{"Whole too large for any", deployment(300).under(none)},
		{"Together", deployment(3).keptTogether().near(neighbours)},
		{"Together over many", deployment(9000).keptTogether().near(neighbours)},
		{"Capacity", deployment(5000).dividedBy(v1alpha1.ByCapacity)},
		{"Capacity, pinned to all", deployment(5000).pinnedToAll()},
		{"Capacity, pinned anew", deployment(5000).pinned(names...).repinned()},
		{"Capacity, more than there is", deployment(50000).pinnedToAll()},
		{"Even", even(5000)},
		{"Weights", deployment(5000).weighing(weights)},
		{"Packing", deployment(5000).dividedBy(v1alpha1.ByPacking)},
		{"Packing that returns", deployment(5000).dividedBy(v1alpha1.ByPacking).returning(true)},
		{"Duplicate", deployment(1).duplicated()},
		{"spread over regions", even(5000).spreadBy("region", 1, v1alpha1.DoNotPlace)},
		{"spread over regions and zones", even(5000).spreadBy("region", 1, v1alpha1.DoNotPlace).spreadBy("zone", 1, v1alpha1.PlaceAnyway)},
		{"spread over clusters", even(5000).spreadBy(v1alpha1.LabelClusterName, 1, v1alpha1.DoNotPlace)},
		{"spread, packed", deployment(5000).dividedBy(v1alpha1.ByPacking).spreadBy("region", 5, v1alpha1.DoNotPlace)},
		{"groups", even(9000).group("30%", names[:300]...).group("2000", names[300:600]...).group("", names[600:]...)},
		{"groups, packed", deployment(9000).dividedBy(v1alpha1.ByPacking).group("30%", names[:300]...).group("", names[300:]...)},
		{"groups, together", deployment(9000).keptTogether().group("30%", names[:300]...).group("", names[300:]...)},
		{"groups, whole", deployment(3).under(none).group("2", names[:300]...).group("", names[300:]...)},
		{"groups, spread", even(9000).group("30%", names[:500]...).group("", names[500:]...).spreadBy("zone", 1, v1alpha1.DoNotPlace)},
		{"affinity", even(5000).under(benchAffinity)},
		{"minReplicas", even(5000).atLeast(6)},
		{"minReplicas, by capacity", deployment(5000).dividedBy(v1alpha1.ByCapacity).atLeast(6)},
		{"minReplicas, packed", deployment(5000).dividedBy(v1alpha1.ByPacking).atLeast(6)},
		{"minClusters and maxClusters", even(5000).onClusters(500, 700)},
		{"minClusters, packed", deployment(5000).dividedBy(v1alpha1.ByPacking).onClusters(700, 0)},
		{"minClusters and maxClusters, spread", even(5000).onClusters(500, 700).spreadBy("zone", 2, v1alpha1.PlaceAnyway)},
		{"preferences", deployment(5000).dividedBy(v1alpha1.ByPacking).preferring(5, names[:500]...).preferring(-3, names[200:900]...)},
		{"selected by label", even(5000).selectingLabel("team", "3")},
		{"fits nowhere", deployment(3).needing(corev1.ResourceCPU, 1<<40).under(none)},
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
func benchOthers() []Other {
	var out []Other
	for i := range benchClusters {
		out = append(out, Other{
			Kind: "Deployment", Group: "apps", Namespace: "shop", Name: fmt.Sprintf("other-%d", i),
			Labels: map[string]string{"app": fmt.Sprint(i % 20)}, Clusters: []string{fmt.Sprintf("cluster-%04d", i)},
		})
	}
	return out
}
