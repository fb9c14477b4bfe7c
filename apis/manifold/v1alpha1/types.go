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
	// taints keep workloads away, unless spec.tolerations of their policy tolerate them; tolerations of pods speak of nodes, and do not
	// count here. NoSchedule and NoExecute keep new replicas away, and NoExecute has those leave that run there. PreferNoSchedule has other
	// clusters come first.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// limits bounds what placement may use on this cluster, by resource. A resource that is not named is bounded by the
	// cluster's free capacity alone.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// allows is what the cluster's admin has let applications bring along that is in no namespace. "manifold cluster join" writes it, along
	// with the rights in the cluster, which are what counts there.
	// +optional
	Allows ClusterAllows `json:"allows,omitempty"`
	// network names the network that the cluster is in, a DNS label. Clusters of one network reach the addresses of each other's pods, so a
	// Service of a namespace is in each of them that runs anything of the namespace, and leads to its pods in all of them. Without a name, the
	// cluster is on its own.
	// +optional
	Network string `json:"network,omitempty"`
	// podCIDRs are the ranges of addresses that the pods of the cluster have, such as 10.1.0.0/16. If there are any, no other cluster of the
	// network is led to an address that this one says to be a pod's and that is in none of them, nor to one in these that another cluster claims.
	// Without, what a cluster says of the addresses of its pods is believed, as long as no two clusters say it of the same address.
	// +optional
	// +listType=atomic
	PodCIDRs []string `json:"podCIDRs,omitempty"`
}

// ClusterAllows is what applications may bring along to a cluster that is in no namespace, what the cluster asks the logical one about, and which pods
// may be made there.
type ClusterAllows struct {
	// priorityClassesUpTo is the highest value of PriorityClasses of the logical cluster that go to this one with the workloads that name
	// them. Unset, none do.
	// +optional
	PriorityClassesUpTo *int32 `json:"priorityClassesUpTo,omitempty"`
	// volumes tells that PersistentVolumes that are made by hand in the logical cluster go to this one along with the claims that they are
	// for. Unset, they stay in the logical cluster, and claims that are for them go to other clusters.
	// +optional
	Volumes bool `json:"volumes,omitempty"`
	// podWebhooks tells that the cluster asks the logical cluster about pods which controllers make there, in namespaces for whose pods a webhook
	// is registered in the logical cluster. Unset, such webhooks see the pods alone that users make themselves.
	// +optional
	PodWebhooks bool `json:"podWebhooks,omitempty"`
	// podSecurity is the level of the Pod Security Standards that pods which Manifold makes in the cluster are kept to: Baseline or Restricted, as
	// "baseline" or "restricted". Unset, they are kept to none. "manifold cluster check" tells whether the cluster still does.
	// +optional
	PodSecurity string `json:"podSecurity,omitempty"`
	// pipelines tells that pipelines show what their targets run in the cluster beside what Manifold has put there, such as the HelmReleases of a Flux
	// that runs there: what carries their label, or is their app. Whoever names the namespace as a target sees it. Unset, they show what comes from the
	// logical cluster alone.
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
	// uid is the UID of the cluster's kube-system namespace. It tells whether the same cluster still answers at the address.
	// +optional
	UID string `json:"uid,omitempty"`
	// tokenSecret names a Secret in the cluster, as NAMESPACE/NAME: the token with which the cluster is reached is valid as long as that exists. It is
	// empty for a credential that does not end with a Secret.
	// +optional
	TokenSecret string `json:"tokenSecret,omitempty"`
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
	// allocatable is the sum over the cluster's ready and schedulable nodes, as far as it counts. Less requested, it is the free capacity.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// grownFrom is what was allocatable at grownAt. From then on at most twice as much counts, or an amount that does not matter, unless
	// spec.limits names the resource.
	// +optional
	GrownFrom corev1.ResourceList `json:"grownFrom,omitempty"`
	// grownAt is when grownFrom was last taken down. Ten minutes later it is again, if the cluster has more.
	// +optional
	GrownAt *metav1.Time `json:"grownAt,omitempty"`
	// requested is what the cluster's running and pending pods request, of all owners, in the resources of allocatable.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// topology holds the region and zone labels that all of the cluster's nodes have with the same value.
	// +optional
	Topology map[string]string `json:"topology,omitempty"`
	// classes are those that the cluster has. Unset while they are not known.
	// +optional
	Classes *ClusterClasses `json:"classes,omitempty"`
}

// ClusterClasses are the classes of a cluster that workloads and volume claims name.
type ClusterClasses struct {
	// priorityClasses are the names of its PriorityClasses, sorted. Those that it has from the logical cluster are not among them.
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
	// default tells that claims which name no class get this one.
	// +optional
	Default bool `json:"default,omitempty"`
	// waitForFirstConsumer tells that a claim gets its volume once a pod that uses it is scheduled.
	// +optional
	WaitForFirstConsumer bool `json:"waitForFirstConsumer,omitempty"`
	// byHand tells that nothing makes volumes of the class: claims that name it wait for those that somebody makes by hand.
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
