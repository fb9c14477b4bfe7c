package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	// status reports what the policy applies to.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitempty"`
}

// PlacementPolicyStatus reports what a policy applies to. It follows the decisions about the workloads with a short delay.
type PlacementPolicyStatus struct {
	// observedGeneration is the generation of the policy that the rest of the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// workloads is how many workloads, and custom resources of kinds that the policy lists, follow the policy.
	Workloads int32 `json:"workloads"`
	// unplaced is how many of these have replicas that no cluster runs.
	Unplaced int32 `json:"unplaced"`
	// lastError explains one problem, empty if there is none: an entry of customWorkloads that does not fit the definition of its kind; otherwise why
	// the first unplaced workload, by kind and name, has no cluster; otherwise the first workload that a cluster does not hold as it should, for
	// example because an override cannot be applied.
	// +optional
	LastError string `json:"lastError,omitempty"`
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
	// status reports what the policy applies to.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitempty"`
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
	// customWorkloads describe custom kinds whose objects create pods, so that they are placed like workloads. A description holds for the whole
	// kind, whatever the policy selects.
	// +optional
	// +listType=map
	// +listMapKey=kind
	CustomWorkloads []CustomWorkload `json:"customWorkloads,omitempty"`

	PlacementPolicySpec `json:",inline"`
}

// PlacementPolicySpec says which workloads, on which clusters, and how their replicas are divided.
type PlacementPolicySpec struct {
	// workloads selects what the policy applies to. Unset selects every workload.
	// +optional
	Workloads *WorkloadSelector `json:"workloads,omitempty"`
	// priority decides between several policies of the same scope that select a workload: the highest wins, then the oldest,
	// then the first by name. Defaults to 0. The ClusterPlacementPolicy default is made with -1000, so that any other one wins over it.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// clusters selects where the workloads may run. Unset selects every cluster.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`
	// keepTogether puts the workloads of a namespace on the same cluster as long as they fit there: the first picks the cluster
	// with the most free capacity, the others follow. It may not be combined with division.
	// +optional
	KeepTogether bool `json:"keepTogether,omitempty"`
	// preferences rank clusters. The weights of all preferences that match a cluster are added up, and a cluster with a higher sum comes first
	// wherever there is a choice: for a workload that is not divided, for which clusters are packed first, and for which ones remain under
	// maxClusters. Room for the whole workload counts more, and nothing moves because of a preference. Pinned workloads ignore them.
	// +optional
	// +listType=atomic
	Preferences []ClusterPreference `json:"preferences,omitempty"`
	// groups are used in their order: the first is filled up to its limit and its room, what is left goes to the next. A cluster
	// belongs to the first group that selects it; one that no group selects is not used. They may not be combined with a division of
	// type Duplicate, and do not count for pinned workloads.
	// +optional
	// +listType=atomic
	Groups []ClusterGroup `json:"groups,omitempty"`
	// return moves replicas back to an earlier group once it has room, and with keepTogether or packing back to the first cluster. Unset means true
	// with groups, and false otherwise. Replicas with ordinals, those of StatefulSets, never return.
	// +optional
	Return *bool `json:"return,omitempty"`
	// minClusters is the least number of clusters that a divided or duplicated workload runs on, as far as it has that many replicas and that many
	// clusters can take a part. Pinned workloads ignore it.
	// +optional
	MinClusters int32 `json:"minClusters,omitempty"`
	// maxClusters is the greatest number of clusters that a divided or duplicated workload runs on: those that run most of it already, then those
	// that are preferred and have room. Replicas that do not fit there wait. 0 means any number. Pinned workloads ignore it.
	// +optional
	MaxClusters int32 `json:"maxClusters,omitempty"`
	// spread divides replicas evenly over the values of a label of clusters. Several constraints nest: each one spreads what the one
	// before it gave to a domain; with groups, what a group got. It needs a division of type Divide, and does not count for pinned
	// workloads. Replicas with ordinals are spread when they are divided first.
	// +optional
	// +listType=atomic
	Spread []SpreadConstraint `json:"spread,omitempty"`
	// affinity keeps workloads near others: only clusters that run one of the selected workloads take replicas, or such clusters come
	// first. What runs does not move when others do. A workload that is selected by its own term may start anywhere while no other one
	// runs. It does not count for pinned workloads.
	// +optional
	// +listType=atomic
	Affinity []WorkloadAffinity `json:"affinity,omitempty"`
	// antiAffinity keeps workloads apart from others: clusters that run one of the selected workloads take no replicas, or come last. It
	// works both ways: neither do clusters that run one under this policy take replicas of the selected workloads, whatever the policy of
	// these says. What runs does not move when others do. It does not count for pinned workloads.
	// +optional
	// +listType=atomic
	AntiAffinity []WorkloadAffinity `json:"antiAffinity,omitempty"`
	// tolerations let the workloads run on clusters with matching taints. With tolerationSeconds, what runs on a cluster stays for that long after
	// a NoExecute taint appears; without, it stays for good. Tolerations in pod templates are about nodes and do not count here. Pinned workloads
	// need them as well.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// division says how replicas are shared out over the selected clusters. Unset puts the whole workload on one of them, unless
	// the workload is pinned to several.
	// +optional
	Division *Division `json:"division,omitempty"`
	// move bounds the steps in which replicas go from cluster to cluster when pin, policy or clusters change. Unset leaves that to the
	// workload's own strategy. It applies to pinned workloads as well.
	// +optional
	Move *Move `json:"move,omitempty"`
	// unschedulableTolerationSeconds is for how long pods may stay unschedulable in a cluster before the replicas that they stand for are
	// placed on clusters that can take them. Unset means the time that the server tolerates, two minutes unless it was started with
	// another one. Where nothing adds nodes, less is enough; where an autoscaler does, it should have the time to. It counts for pinned
	// workloads as well; those that are pinned to one cluster stay there.
	// +optional
	UnschedulableTolerationSeconds *int64 `json:"unschedulableTolerationSeconds,omitempty"`
	// preemptionPolicy says whether workloads that have room nowhere may take that of pods of lower priority: PreemptLowerPriority or
	// Never. Workloads that can run elsewhere move there first. Of the others, the scheduler of the cluster stops pods when the new ones
	// arrive. The priority is that of the workload's PriorityClass. Pods that are stopped are made anew, and placed elsewhere once they
	// have been unschedulable for as long as is tolerated. Unset means Never. It counts for pinned workloads as well.
	// +optional
	PreemptionPolicy corev1.PreemptionPolicy `json:"preemptionPolicy,omitempty"`
	// overrides change what clusters hold of the workloads; the workloads themselves stay as they are. All that select a cluster are
	// applied, in their order. They apply to pinned workloads as well. Only built-in kinds are changed. The pod template of a Job
	// that has started stays as it was, and of a Pod that exists a cluster refuses most changes.
	// +optional
	// +listType=atomic
	Overrides []Override `json:"overrides,omitempty"`
}

// Move bounds the steps in which replicas go from cluster to cluster. It is about Deployments, ReplicaSets and ReplicationControllers:
// replicas with ordinals move one at a time whatever it says, and Jobs and Pods that have started do not move.
type Move struct {
	// maxSurge is how many replicas more than wanted clusters run together on the way: a number, such as 3, or a part of the replicas,
	// such as "25%", rounded up. Unset means that of the workload's own strategy; one that has none makes all replicas anew at once.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// maxUnavailable is how many of the wanted replicas may be missing on the way: a number, or a part of the replicas, rounded down.
	// Unset means none as long as maxSurge allows more than none, and otherwise that of the workload's own strategy. It may not be 0 if
	// maxSurge is 0.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Override changes what clusters hold of a workload. Its fields are applied in this order: images, env, args, labels, annotations,
// strategicMergePatch, jsonPatch.
type Override struct {
	// clusters selects where the override applies. Unset selects every cluster.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`
	// images changes the images of containers and init containers.
	// +optional
	// +listType=atomic
	Images []ImageOverride `json:"images,omitempty"`
	// env sets environment variables of containers and init containers.
	// +optional
	// +listType=atomic
	Env []EnvOverride `json:"env,omitempty"`
	// args replaces the arguments of containers and init containers.
	// +optional
	// +listType=atomic
	Args []ArgsOverride `json:"args,omitempty"`
	// labels are set on the object and on its pod template.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are set on the object and on its pod template.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// strategicMergePatch is a strategic merge patch of the object, as YAML or JSON. It may change labels, annotations and the spec, but
	// neither the number of replicas nor what Manifold itself writes.
	// +optional
	StrategicMergePatch string `json:"strategicMergePatch,omitempty"`
	// jsonPatch is a JSON patch (RFC 6902) of the object: a list of operations, as YAML or JSON. What strategicMergePatch may not
	// change, it may not either.
	// +optional
	JSONPatch string `json:"jsonPatch,omitempty"`
}

// ImageOverride changes parts of images; what is not set stays.
type ImageOverride struct {
	// containers are the names of the containers to change. Empty means all.
	// +optional
	// +listType=atomic
	Containers []string `json:"containers,omitempty"`
	// registry replaces the registry of the images, such as registry.example.com:5000. It may have a path, such as mirror.example.com/proxy, which
	// comes before the image's own. An image that names no registry gets this one.
	// +optional
	Registry string `json:"registry,omitempty"`
	// repository replaces the path between registry and tag, such as shop/web.
	// +optional
	Repository string `json:"repository,omitempty"`
	// tag replaces the tag, and the digest if there is one.
	// +optional
	Tag string `json:"tag,omitempty"`
}

// EnvOverride sets environment variables. A variable that the container has under the name is replaced.
type EnvOverride struct {
	// containers are the names of the containers that it is about. Empty means all.
	// +optional
	// +listType=atomic
	Containers []string `json:"containers,omitempty"`
	// variables are those to set. ConfigMaps and Secrets that no field of the workload names must be in the cluster already.
	// +listType=atomic
	Variables []corev1.EnvVar `json:"variables"`
}

// ArgsOverride replaces arguments.
type ArgsOverride struct {
	// containers are the names of the containers that it is about. Empty means all.
	// +optional
	// +listType=atomic
	Containers []string `json:"containers,omitempty"`
	// args are the arguments to run with.
	// +listType=atomic
	Args []string `json:"args"`
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

// ClusterPreference gives a weight to clusters.
type ClusterPreference struct {
	// weight is added for every cluster that the preference selects: a whole number from -100 to 100. Below 0 makes clusters come last.
	Weight int32 `json:"weight"`

	ClusterSelector `json:",inline"`
}

// ClusterGroup is a set of clusters that is used before the groups behind it.
type ClusterGroup struct {
	// name names the group in messages. It must be unique in the policy.
	Name string `json:"name"`
	// limit is what the group gets at most of each workload: a number of replicas, such as 3, or a part of the workload's replicas,
	// such as "60%", rounded up. Unset leaves the group bounded by its room alone.
	// +optional
	Limit *intstr.IntOrString `json:"limit,omitempty"`

	ClusterSelector `json:",inline"`
}

// UnsatisfiableAction says what happens to replicas that a spread constraint has no place for.
// +enum
type UnsatisfiableAction string

const (
	// DoNotPlace leaves replicas unplaced rather than exceed the skew.
	DoNotPlace UnsatisfiableAction = "DoNotPlace"
	// PlaceAnyway exceeds the skew where room is short.
	PlaceAnyway UnsatisfiableAction = "PlaceAnyway"
)

// LabelClusterName is a label that every cluster counts as having in a spread constraint, with its own name as the value.
const LabelClusterName = "manifold.dev/cluster"

// SpreadConstraint spreads replicas over domains. A domain is the set of clusters with one value of a label.
type SpreadConstraint struct {
	// topologyKey is the label that makes the domains: one of the Cluster objects, or of topology in their status, such as
	// topology.kubernetes.io/region, or manifold.dev/cluster for each cluster by itself. Domains where no cluster may take replicas or
	// runs any are left out of account.
	TopologyKey string `json:"topologyKey"`
	// maxSkew is how many replicas more than the domain with the fewest any domain may have. Defaults to 1.
	// +optional
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// whenUnsatisfiable is DoNotPlace or PlaceAnyway. Defaults to DoNotPlace, under which clusters without the label are not used.
	// +optional
	WhenUnsatisfiable UnsatisfiableAction `json:"whenUnsatisfiable,omitempty"`
}

// WorkloadAffinity is a rule about the clusters where other workloads run.
type WorkloadAffinity struct {
	// workloads selects the others. Unset selects every workload. Affinity is about workloads alone, so custom kinds may not be listed.
	// +optional
	Workloads *WorkloadSelector `json:"workloads,omitempty"`
	// namespaceSelector selects their namespaces by label. Unset selects the namespace of the workload that is placed.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// weight makes the rule a preference, which counts together with preferences: a whole number from 1 to 100. Unset makes it a
	// requirement.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
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
	// ByPacking fills one cluster after the other, so that few are used.
	ByPacking DivisionBy = "Packing"
)

// Division says how replicas are shared out.
type Division struct {
	// type is Duplicate or Divide.
	Type DivisionType `json:"type"`
	// by is the measure of Divide: Even, Weights, Capacity or Packing. Defaults to Capacity. It is not allowed with Duplicate.
	// +optional
	By DivisionBy `json:"by,omitempty"`
	// weights are whole numbers by cluster name, for Weights. A selected cluster that is not named gets nothing.
	// +optional
	Weights map[string]int32 `json:"weights,omitempty"`
	// minReplicas is what a cluster gets at least, unless it gets nothing: parts that would be smaller go to fewer clusters. A workload
	// of fewer replicas runs on one cluster. It is not allowed with Duplicate, spread or groups, and counts for pinned workloads as well.
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`
}
