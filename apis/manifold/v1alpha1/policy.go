package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// tolerations are the taints of clusters that do not keep the workloads away. A toleration of a NoExecute taint with
	// tolerationSeconds lets what runs there stay for so long once the taint is there; without, for ever. Those of pod templates
	// speak of nodes, and count for nothing here. They count for pinned workloads as well.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
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
