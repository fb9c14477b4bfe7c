package capacity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

// Nodes is what the nodes of a cluster amount to.
type Nodes struct {
	// Count counts all nodes, and of these the ready and schedulable ones.
	Count v1alpha1.NodeCount
	// Capacity is the sum over all nodes.
	Capacity corev1.ResourceList
	// Allocatable is the sum over the ready and schedulable nodes.
	Allocatable corev1.ResourceList
	// Topology holds the region and zone labels that all nodes have alike.
	Topology map[string]string
	// Info holds what the node infos of all nodes have alike: operating system, architecture, kernel, container runtime. A field
	// is empty where nodes differ.
	Info corev1.NodeSystemInfo
	// Doubt says which nodes are not counted and why, "" if all are.
	Doubt string
}

// topologyLabels are the labels that say where a node is.
var topologyLabels = [...]string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone}

// SumNodes computes what the nodes amount to. The order of the nodes does not matter.
func SumNodes(nodes []*corev1.Node) Nodes {
	sum := Nodes{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}}
	doubted, first := 0, ""
	for i, node := range nodes {
		sum.Count.Total++
		if why := Implausible(node); why != "" {
			// The first by name is the same whatever the order.
			if text := fmt.Sprintf("node %.63q: %s", node.Name, why); doubted == 0 || text < first {
				first = text
			}
			doubted++
			if i == 0 {
				sum.Topology, sum.Info = topologyOf(node), systemOf(node)
			} else {
				keepCommon(&sum, node)
			}
			continue
		}
		addTo(sum.Capacity, node.Status.Capacity)
		if usable(node) {
			sum.Count.Ready++
			addTo(sum.Allocatable, node.Status.Allocatable)
		}
		if i == 0 {
			sum.Topology, sum.Info = topologyOf(node), systemOf(node)
			continue
		}
		keepCommon(&sum, node)
	}
	if doubted > 0 {
		sum.Doubt = fmt.Sprintf("%d of %d nodes are not counted: %s", doubted, len(nodes), first)
	}
	clip(sum.Capacity)
	clip(sum.Allocatable)
	for name := range sum.Capacity {
		// A cluster whose nodes are all down has nothing of a resource, which is not the same as not knowing it.
		if _, ok := sum.Allocatable[name]; !ok {
			zero := sum.Capacity[name]
			zero.Set(0)
			sum.Allocatable[name] = zero
		}
	}
	if sum.Count.Total == 0 {
		// No nodes yet still is an answer: there is room for no pod.
		sum.Capacity, sum.Allocatable = amounts{}.list(), amounts{}.list()
	}
	return sum
}

// usable reports whether the scheduler would consider the node for a pod that tolerates nothing: it is ready and not cordoned.
// Other taints are left out, for those pods tolerate or not, one by one.
func usable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func addTo(sum, list corev1.ResourceList) {
	for name, quantity := range list {
		total, ok := sum[name]
		if !ok {
			total = quantity.DeepCopy()
		} else {
			total.Add(quantity)
		}
		sum[name] = total
	}
}

func topologyOf(node *corev1.Node) map[string]string {
	found := map[string]string{}
	for _, label := range topologyLabels {
		if value := node.Labels[label]; value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			found[label] = value
		}
	}
	return found
}

func systemOf(node *corev1.Node) corev1.NodeSystemInfo {
	info := node.Status.NodeInfo
	return corev1.NodeSystemInfo{
		OperatingSystem:         labelValue(info.OperatingSystem),
		Architecture:            labelValue(info.Architecture),
		KernelVersion:           text.Line(info.KernelVersion, mostText),
		ContainerRuntimeVersion: text.Line(info.ContainerRuntimeVersion, mostText),
	}
}

// mostText is how many bytes of a version count.
const mostText = 128

// labelValue returns a value that is shown as a label, "" if it is none.
func labelValue(value string) string {
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}

// keepCommon drops from the sum what the node does not share.
func keepCommon(sum *Nodes, node *corev1.Node) {
	here := topologyOf(node)
	for label, value := range sum.Topology {
		if here[label] != value {
			delete(sum.Topology, label)
		}
	}
	info := systemOf(node)
	for _, field := range [...]struct {
		common *string
		here   string
	}{
		{&sum.Info.OperatingSystem, info.OperatingSystem},
		{&sum.Info.Architecture, info.Architecture},
		{&sum.Info.KernelVersion, info.KernelVersion},
		{&sum.Info.ContainerRuntimeVersion, info.ContainerRuntimeVersion},
	} {
		if *field.common != field.here {
			*field.common = ""
		}
	}
}

// TrimNode is an informer's transform: it drops from a node what SumNodes does not read, which for a real node is nearly all.
func TrimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	trimmed := &corev1.Node{}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = node.Name, node.UID, node.ResourceVersion
	trimmed.DeletionTimestamp = node.DeletionTimestamp
	trimmed.Labels = topologyOf(node)
	trimmed.Spec.Unschedulable = node.Spec.Unschedulable
	trimmed.Status.Capacity, trimmed.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	trimmed.Status.NodeInfo = systemOf(node)
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			trimmed.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return trimmed, nil
}
