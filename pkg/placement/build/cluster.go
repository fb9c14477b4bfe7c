package build

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// ClusterBuilder is a cluster that is changed word by word.
type ClusterBuilder struct{ placement.Cluster }

// Cluster is ready, with so many cores free and plenty of everything else.
func Cluster(name string, cores int64) *ClusterBuilder {
	return &ClusterBuilder{placement.Cluster{
		Facts: &placement.Facts{Name: name, Ready: metav1.ConditionTrue},
		Free:  placement.Resources{corev1.ResourceCPU: cores * 1000, corev1.ResourceMemory: 1 << 40, corev1.ResourcePods: 1000}.Amounts(),
	}}
}

func (b *ClusterBuilder) Cordoned() *ClusterBuilder { b.Unschedulable = true; return b }

func (b *ClusterBuilder) NotReady() *ClusterBuilder { b.Ready = metav1.ConditionFalse; return b }

func (b *ClusterBuilder) Unreachable() *ClusterBuilder { b.Ready = metav1.ConditionUnknown; return b }

func (b *ClusterBuilder) NoNodes() *ClusterBuilder { b.Free = nil; return b }

func (b *ClusterBuilder) Says(message string) *ClusterBuilder {
	b.ReadyMessage = message
	return b
}

func (b *ClusterBuilder) Label(key, value string) *ClusterBuilder {
	b.Labels = map[string]string{key: value}
	return b
}

func (b *ClusterBuilder) Taint(key, value string, effect corev1.TaintEffect) *ClusterBuilder {
	b.Taints = append(b.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	return b
}

func (b *ClusterBuilder) Serving(kinds ...string) *ClusterBuilder {
	b.Kinds = kinds
	return b
}

func (b *ClusterBuilder) Having(name corev1.ResourceName, amount int64) *ClusterBuilder {
	b.Free = b.Free.Add(name, amount-b.Free.Of(name))
	return b
}

func Snapshot(clusters ...*ClusterBuilder) placement.Snapshot {
	var list []placement.Cluster
	for _, c := range clusters {
		list = append(list, c.Cluster)
	}
	return placement.NewSnapshot(list)
}

// Offering makes the PriorityClasses known that the cluster has.
func (b *ClusterBuilder) Offering(priorities ...string) *ClusterBuilder {
	b.Classes = &v1alpha1.ClusterClasses{PriorityClasses: priorities}
	return b
}

func (b *ClusterBuilder) LetsIn(upTo int32) *ClusterBuilder {
	b.Allows.PriorityClassesUpTo = &upTo
	return b
}

func (b *ClusterBuilder) TakesVolumes() *ClusterBuilder { b.Allows.Volumes = true; return b }

// In says where a cluster is.
func (b *ClusterBuilder) In(region, zone string) *ClusterBuilder {
	b.Topology = map[string]string{"region": region, "zone": zone}
	return b
}
