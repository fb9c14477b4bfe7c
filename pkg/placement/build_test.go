package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Builders for the tables of this package's tests. Amounts of CPU are in cores.

// String has tests that print or compare clusters as text see the facts as well.
func (c Cluster) String() string {
	return fmt.Sprintf("{%+v free %v withheld %v}", *c.Facts, c.Free, c.Withheld)
}

type clusterBuilder struct{ Cluster }

// cluster is ready, with so many cores free and plenty of everything else.
func cluster(name string, cores int64) *clusterBuilder {
	return &clusterBuilder{Cluster{
		Facts: &Facts{Name: name, Ready: metav1.ConditionTrue},
		Free:  Resources{corev1.ResourceCPU: cores * 1000, corev1.ResourceMemory: 1 << 40, corev1.ResourcePods: 1000}.Amounts(),
	}}
}

func (b *clusterBuilder) cordoned() *clusterBuilder    { b.Unschedulable = true; return b }
func (b *clusterBuilder) notReady() *clusterBuilder    { b.Ready = metav1.ConditionFalse; return b }
func (b *clusterBuilder) unreachable() *clusterBuilder { b.Ready = metav1.ConditionUnknown; return b }
func (b *clusterBuilder) noNodes() *clusterBuilder     { b.Free = nil; return b }

func (b *clusterBuilder) says(message string) *clusterBuilder {
	b.ReadyMessage = message
	return b
}

func (b *clusterBuilder) label(key, value string) *clusterBuilder {
	b.Labels = map[string]string{key: value}
	return b
}

func (b *clusterBuilder) taint(key, value string, effect corev1.TaintEffect) *clusterBuilder {
	b.Taints = append(b.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	return b
}

func (b *clusterBuilder) serving(kinds ...string) *clusterBuilder {
	b.Kinds = kinds
	return b
}

func (b *clusterBuilder) free(name corev1.ResourceName, amount int64) *clusterBuilder {
	b.Free = b.Free.Add(name, amount-b.Free.Of(name))
	return b
}

func snapshot(clusters ...*clusterBuilder) Snapshot {
	var list []Cluster
	for _, c := range clusters {
		list = append(list, c.Cluster)
	}
	return NewSnapshot(list)
}

type requestBuilder struct{ Request }

// deployment asks for so many replicas of one core each.
func deployment(replicas int32) *requestBuilder {
	return &requestBuilder{Request{Workload: Workload{
		GVK:       schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace: "shop", Name: "web",
		Replicas: replicas,
		Requests: Resources{corev1.ResourceCPU: 1000, corev1.ResourcePods: 1},
		Division: Divisible,
	}}}
}

func statefulSet(replicas int32) *requestBuilder {
	b := deployment(replicas)
	b.Workload.GVK.Kind = "StatefulSet"
	b.Workload.Division = Indivisible
	return b
}

func (b *requestBuilder) needing(name corev1.ResourceName, amount int64) *requestBuilder {
	b.Workload.Requests[name] = amount
	return b
}

func (b *requestBuilder) pinned(names ...string) *requestBuilder {
	b.Workload.Pin = &v1alpha1.Pin{Names: names}
	return b
}

// repinned tells that the pin is not the one that the last decision was made for.
func (b *requestBuilder) repinned() *requestBuilder {
	b.Workload.Repinned = true
	return b
}

func (b *requestBuilder) pinnedToAll() *requestBuilder {
	b.Workload.Pin = &v1alpha1.Pin{All: true}
	return b
}

// on is the last decision.
func (b *requestBuilder) on(d Decision) *requestBuilder {
	b.Current = d
	return b
}

func (b *requestBuilder) near(n Neighbours) *requestBuilder {
	b.Neighbours = n
	return b
}

func (b *requestBuilder) leaving(names ...string) *requestBuilder {
	b.Evict = map[string]bool{}
	for _, name := range names {
		b.Evict[name] = true
	}
	return b
}

func (b *requestBuilder) under(change func(*v1alpha1.PlacementPolicySpec)) *requestBuilder {
	if b.Policy == nil {
		b.Policy = &Policy{Kind: "ClusterPlacementPolicy", Name: "rule"}
	}
	change(&b.Policy.Spec)
	return b
}

func (b *requestBuilder) keptTogether() *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.KeepTogether = true })
}

func (b *requestBuilder) duplicated() *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Division = &v1alpha1.Division{Type: v1alpha1.Duplicate}
	})
}

func (b *requestBuilder) dividedBy(by v1alpha1.DivisionBy) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Division = &v1alpha1.Division{Type: v1alpha1.Divide, By: by}
	})
}

func (b *requestBuilder) weighing(weights map[string]int32) *requestBuilder {
	b.dividedBy(v1alpha1.ByWeights).Policy.Spec.Division.Weights = weights
	return b
}

func (b *requestBuilder) selecting(names ...string) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.Clusters = &v1alpha1.ClusterSelector{Names: names} })
}

func (b *requestBuilder) selectingLabel(key, value string) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Clusters = &v1alpha1.ClusterSelector{LabelSelector: metav1.AddLabelToSelector(&metav1.LabelSelector{}, key, value)}
	})
}

// shares is a short way to write a decision.
func shares(pairs ...any) Decision {
	d := Decision{}
	for i := 0; i < len(pairs); i += 2 {
		d[pairs[i].(string)] = Share{Replicas: int32(pairs[i+1].(int))}
	}
	return d
}
