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
	// taints keep workloads away unless the policy of a workload tolerates them in its spec.tolerations. Tolerations of pods are about nodes and
	// do not count here. NoSchedule keeps new replicas away. NoExecute does too, and moves those that run there to other clusters.
	// PreferNoSchedule makes placement try other clusters first.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// limits is the most that placement may use of this cluster, by resource. A resource that is not listed is limited by the cluster's free
	// capacity alone.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// allows lists what the cluster's admin lets applications bring along beyond their namespaces. "manifold cluster join" writes it together with
	// the rights in the cluster, and those rights decide what is possible there.
	// +optional
	Allows ClusterAllows `json:"allows,omitempty"`
	// network names the network that the cluster is in, as a DNS label. Clusters of one network can reach each other's pods by their addresses, so a
	// Service exists in every one of them that runs anything of its namespace, and sends requests to its pods in all of them. A cluster without a
	// network is on its own.
	// +optional
	Network string `json:"network,omitempty"`
	// podCIDRs are the address ranges of the cluster's pods, such as 10.1.0.0/16. Where they are set, the other clusters of the network send
	// requests only to those addresses of this cluster's pods that are in the ranges, and no other cluster may claim an address in them. Where they
	// are not set, the addresses that the cluster reports are used, unless two clusters report the same one.
	// +optional
	// +listType=atomic
	PodCIDRs []string `json:"podCIDRs,omitempty"`
}

// ClusterAllows lists what applications may bring along to a cluster beyond their namespaces, what the cluster asks the logical cluster about, and
// which pods may be created there.
type ClusterAllows struct {
	// priorityClassesUpTo is the highest value that a PriorityClass of the logical cluster may have to be copied to this cluster with the
	// workloads that name it. Unset means that none is copied.
	// +optional
	PriorityClassesUpTo *int32 `json:"priorityClassesUpTo,omitempty"`
	// volumes is true if PersistentVolumes that somebody creates in the logical cluster are copied to this cluster together with the claims that they
	// are reserved for. Otherwise such volumes stay in the logical cluster, and their claims go to other clusters.
	// +optional
	Volumes bool `json:"volumes,omitempty"`
	// podWebhooks is true if the cluster asks the logical cluster about pods that its controllers create, in namespaces whose pods a webhook of the
	// logical cluster is registered for. Otherwise such webhooks see only the pods that users create themselves.
	// +optional
	PodWebhooks bool `json:"podWebhooks,omitempty"`
	// podSecurity is the level of the Pod Security Standards that the cluster enforces on the pods which Manifold creates there: "baseline" or
	// "restricted". Unset means none. "manifold cluster check" reports whether the cluster still enforces it.
	// +optional
	PodSecurity string `json:"podSecurity,omitempty"`
	// pipelines is true if pipelines may also show what their targets run in the cluster that Manifold has not put there, such as the HelmReleases of
	// a Flux in the cluster: objects that carry the pipeline's label, or are its app. Everybody who may name the namespace as a target sees them.
	// Otherwise pipelines show only what comes from the logical cluster.
	// +optional
	Pipelines bool `json:"pipelines,omitempty"`
}

// Values of spec.allows.podSecurity.
const (
	PodSecurityBaseline   = "baseline"
	PodSecurityRestricted = "restricted"
)

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

// ClusterAnswering is the condition type that is False while a cluster does not answer, since it was last heard. It tells so within seconds, for
// those who show what runs in a cluster; placement waits for the grace period and reads Ready alone. A cluster that answers does not have it.
const ClusterAnswering = "Answering"

// ClusterSyncerRunning is the condition type that tells whether what is placed on the cluster is brought there: False with reason
// RightsMissing while its credential may not do what that takes.
const ClusterSyncerRunning = "SyncerRunning"

// ClusterCredentialValid is the condition type that tells whether the cluster goes on being reached with the credential that is stored: False
// when it is refused, has expired, or will and cannot be renewed.
const ClusterCredentialValid = "CredentialValid"

// ClusterCapacityCounted is the condition type that tells, by being False, that not all counts that a cluster says of its size: it has nodes
// such as nobody has, or has grown faster than by doubling in ten minutes. A cluster of which all counts does not have it.
const ClusterCapacityCounted = "CapacityCounted"

// ClusterDrained is the condition type that tells how far a drain is: False while workloads are left, with reason Draining when some of
// them move, else Stuck when some can neither move nor will end by themselves, else Waiting, and True when none is left. A cluster that is
// not being drained does not have it.
const ClusterDrained = "Drained"

// Reasons of the condition Drained.
const (
	ReasonDraining = "Draining"
	ReasonWaiting  = "Waiting"
	ReasonStuck    = "Stuck"
	ReasonDrained  = "Drained"
)

// Taints that Manifold itself puts on clusters.
const (
	// TaintUnreachable is on a cluster whose Ready condition is Unknown.
	TaintUnreachable = "manifold.dev/unreachable"
	// TaintNotReady is on a cluster whose Ready condition is False.
	TaintNotReady = "manifold.dev/not-ready"
)

// TaintDrain is the key of the taint that "manifold cluster drain" puts on a cluster, with the effect NoExecute: everything moves off.
const TaintDrain = "manifold.dev/drain"

// DrainForce is the value of TaintDrain that moves off also what has to start over elsewhere, such as Jobs.
const DrainForce = "force"

// ClusterStatus is what a cluster reports about itself, kept current by watch.
type ClusterStatus struct {
	// conditions tell how the cluster is. Ready is the one that placement reads: a cluster where it is not True gets nothing new.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// uid is the UID of the cluster's kube-system namespace. A different one means that another cluster answers at the address.
	// +optional
	UID string `json:"uid,omitempty"`
	// tokenSecret is the Secret in the cluster, as NAMESPACE/NAME, that the token by which the cluster is reached belongs to: deleting it revokes the
	// token. It is empty for other credentials.
	// +optional
	TokenSecret string `json:"tokenSecret,omitempty"`
	// kubernetesVersion is the version that the cluster's API server reports, such as v1.37.1.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// kinds are the kinds that the cluster serves, written Kind.version.group, sorted.
	// +optional
	// +listType=atomic
	Kinds []string `json:"kinds,omitempty"`
	// nodes counts the cluster's nodes and the ready ones among them. Without a ready node, nothing is allocatable.
	// +optional
	Nodes NodeCount `json:"nodes,omitempty"`
	// capacity is the sum over all of the cluster's nodes. It is for people to read; placement reads allocatable.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// allocatable is the sum over the cluster's ready and schedulable nodes, limited as grownFrom says. The free capacity is allocatable less requested.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// grownFrom is what was allocatable at grownAt. Since then at most twice as much counts as allocatable, so that a cluster cannot draw all work by
	// a false report. Small amounts, and resources in spec.limits, are not limited in this way.
	// +optional
	GrownFrom corev1.ResourceList `json:"grownFrom,omitempty"`
	// grownAt is when grownFrom was last recorded. It is recorded again ten minutes later if the cluster reports more.
	// +optional
	GrownAt *metav1.Time `json:"grownAt,omitempty"`
	// requested is the sum of what all running and pending pods of the cluster request, whoever created them, in the resources of allocatable.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// topology holds those region and zone labels that have the same value on all of the cluster's nodes.
	// +optional
	Topology map[string]string `json:"topology,omitempty"`
	// classes are the PriorityClasses, RuntimeClasses and StorageClasses of the cluster. Unset while they are not known.
	// +optional
	Classes *ClusterClasses `json:"classes,omitempty"`
}

// ClusterClasses are the classes of a cluster that workloads and volume claims name.
type ClusterClasses struct {
	// priorityClasses are the names of its PriorityClasses, sorted, without those copied from the logical cluster.
	// +optional
	// +listType=atomic
	PriorityClasses []string `json:"priorityClasses,omitempty"`
	// runtimeClasses are the names of its RuntimeClasses, sorted.
	// +optional
	// +listType=atomic
	RuntimeClasses []string `json:"runtimeClasses,omitempty"`
	// storageClasses are its StorageClasses, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	StorageClasses []ClusterStorageClass `json:"storageClasses,omitempty"`
}

// ClusterStorageClass is a StorageClass of a cluster.
type ClusterStorageClass struct {
	// name is that of the StorageClass.
	Name string `json:"name"`
	// default is true if claims that name no class get this one.
	// +optional
	Default bool `json:"default,omitempty"`
	// waitForFirstConsumer is true if a claim gets its volume only once a pod that uses it is scheduled.
	// +optional
	WaitForFirstConsumer bool `json:"waitForFirstConsumer,omitempty"`
	// byHand is true if nothing provisions volumes of the class: claims that name it wait for a volume that somebody creates.
	// +optional
	ByHand bool `json:"byHand,omitempty"`
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
