package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Condition types of an Application.
const (
	// ApplicationSourceReady is True while the source answers, and False with the reason why it does not.
	ApplicationSourceReady = "SourceReady"
	// ApplicationRendered is True while the newest state of the source has been made a revision, and False when it cannot be.
	ApplicationRendered = "Rendered"
	// ApplicationReleased is True while the wanted revision runs in all targets.
	ApplicationReleased = "Released"
	// ApplicationHonoured is False while something that the application's own configuration asks for is not done, and names it.
	ApplicationHonoured = "Honoured"
	// ApplicationInSync is True while the objects of the application are what was released, False while fields of them differ, and Unknown while
	// that cannot be told.
	ApplicationInSync = "InSync"
	// ApplicationNotified is False while a notice cannot be sent, and says why. It is there once one could not be.
	ApplicationNotified = "Notified"
)

// SyncStatus tells whether clusters have what was released.
// +enum
type SyncStatus string

const (
	// Synced is where they have.
	Synced SyncStatus = "Synced"
	// OutOfSync is where they do not.
	OutOfSync SyncStatus = "OutOfSync"
	// SyncUnknown is where they cannot be read.
	SyncUnknown SyncStatus = "Unknown"
)

// HealthStatus tells how what was released is.
// +enum
type HealthStatus string

const (
	// Healthy is what is ready.
	Healthy HealthStatus = "Healthy"
	// Progressing is what is on the way to being ready.
	Progressing HealthStatus = "Progressing"
	// Degraded is what has failed.
	Degraded HealthStatus = "Degraded"
	// Missing is what is not there.
	Missing HealthStatus = "Missing"
	// HealthUnknown is what cannot be read.
	HealthUnknown HealthStatus = "Unknown"
)

// ApplicationStatus shows which revision runs in which cluster, and whether it is healthy.
type ApplicationStatus struct {
	// observedGeneration is the generation of the application that the rest is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// source is the state of the source when it was last read.
	// +optional
	Source *SourceStatus `json:"source,omitempty"`
	// latestRevision is the name of the newest revision.
	// +optional
	LatestRevision string `json:"latestRevision,omitempty"`
	// lastRevisionNumber is the highest number of a revision so far. Numbers are never reused.
	// +optional
	LastRevisionNumber int64 `json:"lastRevisionNumber,omitempty"`
	// wantedRevision is the name of the revision that should run.
	// +optional
	WantedRevision string `json:"wantedRevision,omitempty"`
	// liveRevision is the name of the revision that was last released successfully.
	// +optional
	LiveRevision string `json:"liveRevision,omitempty"`
	// release is the name of the release in progress, or of the last one.
	// +optional
	Release string `json:"release,omitempty"`
	// releasePhase is the phase of that release.
	// +optional
	ReleasePhase ReleasePhase `json:"releasePhase,omitempty"`
	// sync is OutOfSync if any target is, or somebody has changed an object in the logical cluster, otherwise Unknown if any target is, otherwise Synced.
	// +optional
	Sync SyncStatus `json:"sync,omitempty"`
	// health is the worst health of all targets whose health is known, and Unknown if there are none.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// targets show what runs in each target, and in those that were dropped, as long as something runs there.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []TargetStatus `json:"targets,omitempty"`
	// plugins show what plugins say of the application in each of their deploy targets.
	// +optional
	// +listType=map
	// +listMapKey=plugin
	// +listMapKey=deployTarget
	Plugins []PluginTargetStatus `json:"plugins,omitempty"`
	// drift lists fields of the application's objects in the logical cluster that are not as they were released, at most 20.
	// +optional
	// +listType=atomic
	Drift []FieldDrift `json:"drift,omitempty"`
	// driftCount is the number of all such fields.
	// +optional
	DriftCount int32 `json:"driftCount,omitempty"`
	// variants are what should run now.
	// +optional
	// +listType=map
	// +listMapKey=name
	Variants []Variant `json:"variants,omitempty"`
	// conditions show the state of the application.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// PluginTargetStatus is what a plugin says of an application in one of its deploy targets.
type PluginTargetStatus struct {
	// plugin is the name of the plugin.
	Plugin string `json:"plugin"`
	// deployTarget is the name of the deploy target.
	DeployTarget string `json:"deployTarget"`
	// sync is Synced, OutOfSync, or Unknown where the plugin cannot tell, or cannot be asked.
	// +optional
	Sync SyncStatus `json:"sync,omitempty"`
	// health is the worst health of the resources there, and Unknown if there are none.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// message explains sync and health.
	// +optional
	Message string `json:"message,omitempty"`
	// resources are what the plugin has found there, at most 20.
	// +optional
	// +listType=atomic
	Resources []PluginResource `json:"resources,omitempty"`
	// resourceCount is the number of all of them.
	// +optional
	ResourceCount int32 `json:"resourceCount,omitempty"`
	// differences are what there differs from the revision that was released, at most 20, as plugins with the service Drift say.
	// +optional
	// +listType=atomic
	Differences []PluginDifference `json:"differences,omitempty"`
	// differenceCount is the number of all of them.
	// +optional
	DifferenceCount int32 `json:"differenceCount,omitempty"`
}

// PluginDifferenceKind is how a resource differs.
// +enum
type PluginDifferenceKind string

const (
	// PluginMissing is a resource that is to be there and is not.
	PluginMissing PluginDifferenceKind = "Missing"
	// PluginExtra is a resource that is not to be there and is.
	PluginExtra PluginDifferenceKind = "Extra"
	// PluginChanged is a resource that is there and is not as it is to be.
	PluginChanged PluginDifferenceKind = "Changed"
	// PluginDiffers is a resource of which the plugin does not say how it differs.
	PluginDiffers PluginDifferenceKind = "Differs"
)

// PluginDifference is a resource that is not as it is to be. What exactly differs is not shown: it may be secret.
type PluginDifference struct {
	// type is what it is.
	// +optional
	Type string `json:"type,omitempty"`
	// name is its name.
	// +optional
	Name string `json:"name,omitempty"`
	// kind is Missing, Extra, Changed or Differs.
	Kind PluginDifferenceKind `json:"kind"`
}

// PluginResource is something of an application that a plugin has found.
type PluginResource struct {
	// id is how the plugin knows it.
	ID string `json:"id"`
	// parents are the ids of those that it belongs to.
	// +optional
	// +listType=atomic
	Parents []string `json:"parents,omitempty"`
	// type is what it is.
	// +optional
	Type string `json:"type,omitempty"`
	// name is its name.
	// +optional
	Name string `json:"name,omitempty"`
	// health is Healthy, Degraded or Unknown.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// message explains it.
	// +optional
	Message string `json:"message,omitempty"`
}

// FieldDrift is a field that is not as it was released, or an object that is missing.
type FieldDrift struct {
	// group is the API group of the object.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is the kind of the object.
	Kind string `json:"kind"`
	// name is the name of the object.
	Name string `json:"name"`
	// path is the JSON pointer of the field, as in spec.drift.ignore. It is empty if the whole object is missing.
	// +optional
	Path string `json:"path,omitempty"`
	// wanted is the released value as JSON, shortened if it is long. Values of Secrets are masked.
	// +optional
	Wanted string `json:"wanted,omitempty"`
	// found is the current value in the same form. It is empty if the field is not set.
	// +optional
	Found string `json:"found,omitempty"`
	// clusters are the clusters that the difference reaches, at most 20. There are none if it is in the logical cluster alone: clusters hold what was released.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
}

// SourceStatus is the state of a source when it was last read.
type SourceStatus struct {
	// origin is where the manifests came from.
	// +optional
	Origin *Origin `json:"origin,omitempty"`
	// hash is the hash of the manifests, or of the git tree that contains them.
	// +optional
	Hash string `json:"hash,omitempty"`
	// time is when the source last changed.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// Origin is where manifests came from.
type Origin struct {
	// url is the address of the repository, without credentials.
	// +optional
	URL string `json:"url,omitempty"`
	// ref is the branch or tag that pointed to the commit.
	// +optional
	Ref string `json:"ref,omitempty"`
	// path is the folder, relative to the root of the repository.
	// +optional
	Path string `json:"path,omitempty"`
	// commit is the hash of the commit.
	// +optional
	Commit string `json:"commit,omitempty"`
	// author is the author of the commit.
	// +optional
	Author string `json:"author,omitempty"`
	// message is the commit message.
	// +optional
	Message string `json:"message,omitempty"`
	// time is when the commit was made.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// TargetStatus shows what runs in a target.
type TargetStatus struct {
	// name is the name of the target.
	Name string `json:"name"`
	// revision is the name of the revision that should run in the target. It is empty while its clusters should run different ones.
	// +optional
	Revision string `json:"revision,omitempty"`
	// liveRevision is the name of the revision that runs in all clusters of the target.
	// +optional
	LiveRevision string `json:"liveRevision,omitempty"`
	// sync is OutOfSync if any cluster is, otherwise Unknown if any cluster is, otherwise Synced.
	// +optional
	Sync SyncStatus `json:"sync,omitempty"`
	// health is the worst health of all clusters whose health is known, and Unknown if there are none.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// message explains sync and health.
	// +optional
	Message string `json:"message,omitempty"`
	// clusters show what runs in each cluster of the target.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []TargetClusterStatus `json:"clusters,omitempty"`
}

// TargetClusterStatus shows what runs in a cluster of a target.
type TargetClusterStatus struct {
	// name is the name of the cluster.
	Name string `json:"name"`
	// revision is the name of the revision that should run in the cluster.
	// +optional
	Revision string `json:"revision,omitempty"`
	// liveRevision is the name of the revision that runs there.
	// +optional
	LiveRevision string `json:"liveRevision,omitempty"`
	// replicas is the number of pods that should run in the cluster, without those of canary and baseline.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// ready is the number of these pods that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// sync is Synced, OutOfSync or Unknown.
	// +optional
	Sync SyncStatus `json:"sync,omitempty"`
	// health is Healthy, Progressing, Degraded, Missing or Unknown.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// message explains sync and health. For drift it names the object and the field, what was released and what was found.
	// +optional
	Message string `json:"message,omitempty"`
}

// Variant is the application itself (primary), or a copy of it with names of its own (canary, baseline).
type Variant struct {
	// name is primary, canary or baseline.
	Name string `json:"name"`
	// revision is the name of the revision of the variant, in all clusters that do not name another one.
	// +optional
	Revision string `json:"revision,omitempty"`
	// hash is the hash of the revision. It tells the revision from one of an earlier application that had the same name.
	// +optional
	Hash string `json:"hash,omitempty"`
	// replicas is how many replicas of each workload a copy has in all clusters together: a number, or a percentage of the replicas of the application, such
	// as "10%". It is unset for the primary, which has what its manifests say.
	// +optional
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`
	// perCluster means that replicas is the number in each cluster.
	// +optional
	PerCluster bool `json:"perCluster,omitempty"`
	// suffix is appended to the names of the objects of a copy, after a hyphen.
	// +optional
	Suffix string `json:"suffix,omitempty"`
	// createService means that the variant has a Service of its own.
	// +optional
	CreateService bool `json:"createService,omitempty"`
	// labelSelector means that the variant label is part of the selectors of the primary's workloads.
	// +optional
	LabelSelector bool `json:"labelSelector,omitempty"`
	// patches change the objects of a copy.
	// +optional
	// +listType=atomic
	Patches []VariantPatch `json:"patches,omitempty"`
	// traffic is the percentage of the requests in all clusters together that the variant gets. It is unset if requests are not split. With the method
	// Replicas it is computed from the numbers of ready pods.
	// +optional
	Traffic *int32 `json:"traffic,omitempty"`
	// clusters are the clusters that the variant runs in.
	// +optional
	// +listType=map
	// +listMapKey=target
	// +listMapKey=cluster
	Clusters []VariantCluster `json:"clusters,omitempty"`
}

// VariantCluster is a variant in a cluster.
type VariantCluster struct {
	// target is the name of the target that the cluster belongs to.
	Target string `json:"target"`
	// cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// revision is the name of the revision of the variant in this cluster. Defaults to that of the variant.
	// +optional
	Revision string `json:"revision,omitempty"`
	// hash is the hash of the revision.
	// +optional
	Hash string `json:"hash,omitempty"`
	// weight is the percentage of the replicas of each workload that the target had when the revision was released here. If unset, the cluster has the full
	// number.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// workloads are the replicas that the variant should have here, by workload, as KIND/NAME.
	// +optional
	Workloads map[string]int32 `json:"workloads,omitempty"`
	// ready is the number of ready replicas of all workloads together.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// routed means that the variant has had requests here, so that it is drained before it is removed.
	// +optional
	Routed bool `json:"routed,omitempty"`
	// traffic is the percentage of the requests in this cluster that the variant gets now. It is lower than wanted if the variant has too few ready pods
	// here. In the status of an Application with the method Replicas it is computed from the numbers of ready pods.
	// +optional
	Traffic *int32 `json:"traffic,omitempty"`
}
