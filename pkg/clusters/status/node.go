package status

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
)

const (
	// LabelNodeCluster is on every Node that mirrors a Cluster, with the name of the Cluster.
	LabelNodeCluster = "manifold.dev/cluster"
	// labelNodeRole makes "kubectl get nodes" show what these nodes are.
	labelNodeRole = "node-role.kubernetes.io/cluster"
	// nodeOSImage stands where a node's operating system would.
	nodeOSImage = "manifold cluster"
	// providerPrefix followed by the name of the cluster is the provider ID of its Node.
	providerPrefix = "manifold://"
)

// IsMirror reports whether a Node of the logical cluster mirrors a Cluster.
func IsMirror(node *corev1.Node) bool { return node.Labels[LabelNodeCluster] != "" }

// Node returns the Node that mirrors a cluster. nodes is what is known of the cluster's own nodes; without it, what the last
// mirror said of them stays. last is the mirror so far, nil if there is none; labels and annotations of others on it are kept.
func Node(cluster *v1alpha1.Cluster, nodes *capacity.Nodes, last *corev1.Node) *corev1.Node {
	node := &corev1.Node{}
	if last != nil {
		node = last.DeepCopy()
	}
	system := systemOf(nodes, node)
	node.Name = cluster.Name
	node.OwnerReferences = []metav1.OwnerReference{OwnerReference(cluster)}
	node.Labels = mirrorLabels(node.Labels, cluster, system)
	node.Spec.ProviderID = providerPrefix + cluster.Name
	node.Spec.Unschedulable = cluster.Spec.Unschedulable
	node.Spec.Taints = Taints(cluster)
	node.Status = mirrorStatus(cluster, system)
	return node
}

// OwnerReference lets the garbage collector remove what belongs to a Cluster, even if this process misses its end.
func OwnerReference(cluster *v1alpha1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(),
		Kind:       "Cluster",
		Name:       cluster.Name,
		UID:        cluster.UID,
	}
}

func systemOf(nodes *capacity.Nodes, last *corev1.Node) corev1.NodeSystemInfo {
	if nodes != nil {
		return nodes.Info
	}
	return last.Status.NodeInfo
}

// mirrorLabels returns the labels of others with ours. Ours that no longer hold are dropped.
func mirrorLabels(others map[string]string, cluster *v1alpha1.Cluster, system corev1.NodeSystemInfo) map[string]string {
	labels := maps.Clone(others)
	if labels == nil {
		labels = map[string]string{}
	}
	ours := map[string]string{
		LabelNodeCluster:           cluster.Name,
		corev1.LabelHostname:       cluster.Name,
		corev1.LabelOSStable:       system.OperatingSystem,
		corev1.LabelArchStable:     system.Architecture,
		corev1.LabelTopologyRegion: cluster.Status.Topology[corev1.LabelTopologyRegion],
		corev1.LabelTopologyZone:   cluster.Status.Topology[corev1.LabelTopologyZone],
	}
	for key, value := range ours {
		if value == "" {
			delete(labels, key)
			continue
		}
		labels[key] = value
	}
	labels[labelNodeRole] = ""
	return labels
}

func mirrorStatus(cluster *v1alpha1.Cluster, system corev1.NodeSystemInfo) corev1.NodeStatus {
	system.KubeletVersion = cluster.Status.KubernetesVersion
	system.OSImage = nodeOSImage
	system.SystemUUID = cluster.Status.UID
	return corev1.NodeStatus{
		Capacity:    cluster.Status.Capacity,
		Allocatable: boundAllocatable(cluster),
		Conditions:  []corev1.NodeCondition{mirrorReady(cluster)},
		Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: cluster.Name}},
		NodeInfo:    system,
	}
}

// boundAllocatable is what the logical cluster may use: a limit counts like a smaller cluster.
func boundAllocatable(cluster *v1alpha1.Cluster) corev1.ResourceList {
	if cluster.Status.Allocatable == nil {
		return nil
	}
	return capacity.Bound(cluster.Status.Allocatable, cluster.Spec.Limits)
}

func mirrorReady(cluster *v1alpha1.Cluster) corev1.NodeCondition {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterReady)
	if ready == nil {
		return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "Joining",
			Message: "the cluster has not answered yet"}
	}
	return corev1.NodeCondition{
		Type:    corev1.NodeReady,
		Status:  corev1.ConditionStatus(ready.Status),
		Reason:  ready.Reason,
		Message: ready.Message,
		// Not the time of the last probe: that would be a write for every probe. The Lease has it.
		LastHeartbeatTime:  ready.LastTransitionTime,
		LastTransitionTime: ready.LastTransitionTime,
	}
}

// SameObject and SameStatus report whether an update of the Node, or of its status, would change anything.
func SameObject(a, b *corev1.Node) bool {
	return equality.Semantic.DeepEqual(a.ObjectMeta, b.ObjectMeta) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func SameStatus(a, b *corev1.Node) bool { return equality.Semantic.DeepEqual(a.Status, b.Status) }
