package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is a physical cluster that workloads of the logical cluster run on. "manifold cluster join" makes it.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how the cluster is reached and what may be placed on it.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty"`
	// status is what the cluster reports about itself.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec says how a cluster is reached and what may be placed on it.
type ClusterSpec struct {
	// connection says how the logical cluster reaches this cluster. Without a secretRef the cluster cannot be reached, and nothing
	// is placed on it.
	Connection ClusterConnection `json:"connection"`
	// unschedulable keeps new replicas away. What runs there already stays. "manifold cluster cordon" sets it.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`
	// taints keep workloads away whose pods do not tolerate them, as the taints of a node do.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// limits bounds what placement may use on this cluster, by resource. A resource that is not named is bounded by the
	// cluster's free capacity alone.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// ClusterConnection says how a cluster is reached.
type ClusterConnection struct {
	// secretRef names the Secret that holds a kubeconfig under the key "kubeconfig".
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// SecretReference names a Secret in any namespace.
type SecretReference struct {
	// namespace is the namespace that the Secret is in.
	Namespace string `json:"namespace"`
	// name is the name of the Secret.
	Name string `json:"name"`
}

// ClusterReady is the condition type that tells whether a cluster answers and can take work: True when it does, False when it
// answers that it is not ready or refuses the credential, Unknown when it has been silent for longer than the grace period.
const ClusterReady = "Ready"

// Taints that Manifold itself puts on clusters.
const (
	// TaintUnreachable is on a cluster whose Ready condition is Unknown.
	TaintUnreachable = "manifold.dev/unreachable"
	// TaintNotReady is on a cluster whose Ready condition is False.
	TaintNotReady = "manifold.dev/not-ready"
)

// ClusterStatus is what a cluster reports about itself, kept current by watch.
type ClusterStatus struct {
	// conditions tell how the cluster is. Ready is the one that placement reads: a cluster where it is not True gets nothing new.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// uid is the UID of the cluster's kube-system namespace. It tells whether the same cluster still answers at the address.
	// +optional
	UID string `json:"uid,omitempty"`
	// kubernetesVersion is the version that the cluster's API server reports, such as v1.37.1.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// kinds are the kinds that the cluster serves, written Kind.version.group, sorted.
	// +optional
	// +listType=atomic
	Kinds []string `json:"kinds,omitempty"`
	// nodes counts the cluster's nodes, and of these the ready ones. Without a ready node nothing is allocatable.
	// +optional
	Nodes NodeCount `json:"nodes,omitempty"`
	// capacity is the sum over all of the cluster's nodes. It is for people to read; placement reads allocatable.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// allocatable is the sum over the cluster's ready and schedulable nodes. Less requested, it is the free capacity.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// requested is what the cluster's running and pending pods request, of all owners, in the resources of allocatable.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// topology holds the region and zone labels that all of the cluster's nodes have with the same value.
	// +optional
	Topology map[string]string `json:"topology,omitempty"`
}

// NodeCount counts nodes.
type NodeCount struct {
	// total is the number of all nodes.
	Total int32 `json:"total"`
	// ready is the number of nodes that are ready and schedulable, whose resources make up allocatable.
	Ready int32 `json:"ready"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []Cluster `json:"items"`
}

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementPolicy says where the workloads of its namespace run and how their replicas are divided.
type PlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy.
	// +optional
	Spec PlacementPolicySpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementPolicyList is a list of policies.
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []PlacementPolicy `json:"items"`
}

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterPlacementPolicy says where workloads of any namespace run and how their replicas are divided. A PlacementPolicy in the
// workload's namespace that selects the workload wins over it, whatever the priorities.
type ClusterPlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy.
	// +optional
	Spec ClusterPlacementPolicySpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterPlacementPolicyList is a list of policies.
type ClusterPlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []ClusterPlacementPolicy `json:"items"`
}

// ClusterPlacementPolicySpec is a policy for workloads of several namespaces.
type ClusterPlacementPolicySpec struct {
	// namespaceSelector selects by the labels of the workload's namespace. Unset selects all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	PlacementPolicySpec `json:",inline"`
}

// PlacementPolicySpec says which workloads, on which clusters, and how their replicas are divided.
type PlacementPolicySpec struct {
	// workloads selects what the policy is about. Unset selects every workload.
	// +optional
	Workloads *WorkloadSelector `json:"workloads,omitempty"`
	// priority decides between several policies of the same scope that select a workload: the highest wins, then the oldest,
	// then the first by name.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// clusters selects where the workloads may run. Unset selects every cluster.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`
	// keepTogether puts the workloads of a namespace on the same cluster as long as they fit there: the first picks the cluster
	// with the most free capacity, the others follow. It may not be combined with division.
	// +optional
	KeepTogether bool `json:"keepTogether,omitempty"`
	// division says how replicas are shared out over the selected clusters. Unset puts the whole workload on one of them, unless
	// the workload is pinned to several.
	// +optional
	Division *Division `json:"division,omitempty"`
}

// WorkloadSelector selects workloads. Every field that is set must match.
type WorkloadSelector struct {
	// kinds are kinds of workloads: DaemonSet, Deployment, Job, Pod, ReplicaSet, ReplicationController or StatefulSet. Empty
	// selects all of them. A kind of custom resources is written KIND.GROUP, such as Widget.example.com, and is selected only if it is
	// listed.
	// +optional
	// +listType=set
	Kinds []string `json:"kinds,omitempty"`
	// labelSelector selects by the workload's labels. Unset selects all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ClusterSelector selects clusters. Every field that is set must match.
type ClusterSelector struct {
	// names are names of clusters, whether or not they have joined. Empty selects all names.
	// +optional
	// +listType=set
	Names []string `json:"names,omitempty"`
	// labelSelector selects by the labels of the Cluster objects. Unset selects all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// DivisionType is a way to hand out replicas.
// +enum
type DivisionType string

const (
	// Duplicate gives every selected cluster the whole number of replicas.
	Duplicate DivisionType = "Duplicate"
	// Divide shares the replicas out over the selected clusters.
	Divide DivisionType = "Divide"
)

// DivisionBy is a measure that replicas are divided by.
// +enum
type DivisionBy string

const (
	// ByEven gives every cluster the same, as far as the number allows.
	ByEven DivisionBy = "Even"
	// ByWeights gives every cluster its part of the weights.
	ByWeights DivisionBy = "Weights"
	// ByCapacity gives every cluster its part of the free capacity, measured in replicas of the workload that still fit.
	ByCapacity DivisionBy = "Capacity"
)

// Division says how replicas are shared out.
type Division struct {
	// type is Duplicate or Divide.
	Type DivisionType `json:"type"`
	// by is the measure of Divide: Even, Weights or Capacity. Defaults to Capacity. It is not allowed with Duplicate.
	// +optional
	By DivisionBy `json:"by,omitempty"`
	// weights are whole numbers by cluster name, for Weights. A selected cluster that is not named gets nothing.
	// +optional
	Weights map[string]int32 `json:"weights,omitempty"`
}
