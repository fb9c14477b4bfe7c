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

// ApplicationStatus tells what runs where.
type ApplicationStatus struct {
	// observedGeneration is the generation of the application that the rest is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// source is what the source was when it was last read.
	// +optional
	Source *SourceStatus `json:"source,omitempty"`
	// latestRevision is the name of the newest revision.
	// +optional
	LatestRevision string `json:"latestRevision,omitempty"`
	// lastRevisionNumber is the highest number that a revision has had. Numbers are never used again.
	// +optional
	LastRevisionNumber int64 `json:"lastRevisionNumber,omitempty"`
	// wantedRevision is the name of the revision that the application is to run, or is on the way to.
	// +optional
	WantedRevision string `json:"wantedRevision,omitempty"`
	// liveRevision is the name of the revision that was last released with success.
	// +optional
	LiveRevision string `json:"liveRevision,omitempty"`
	// release is the name of the release that runs, or of the last one.
	// +optional
	Release string `json:"release,omitempty"`
	// releasePhase is the phase of that release.
	// +optional
	ReleasePhase ReleasePhase `json:"releasePhase,omitempty"`
	// sync is OutOfSync if any target is, else Unknown if any is, else Synced.
	// +optional
	Sync SyncStatus `json:"sync,omitempty"`
	// health is the worst among the targets that are known, and Unknown if none is.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// targets tell what runs in each.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []TargetStatus `json:"targets,omitempty"`
	// drift are fields of the application's objects that are not what was released: at most 20 of them.
	// +optional
	// +listType=atomic
	Drift []FieldDrift `json:"drift,omitempty"`
	// driftCount is how many such fields there are in all.
	// +optional
	DriftCount int32 `json:"driftCount,omitempty"`
	// variants are what is to run now.
	// +optional
	// +listType=map
	// +listMapKey=name
	Variants []Variant `json:"variants,omitempty"`
	// conditions tell how the application is.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// FieldDrift is a field that is not what was released, or an object that is not there.
type FieldDrift struct {
	// group is the API group of the object.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is its kind.
	Kind string `json:"kind"`
	// name is its name.
	Name string `json:"name"`
	// path is the field as a JSON pointer, as spec.drift.ignore takes it. It is empty if the whole object is missing.
	// +optional
	Path string `json:"path,omitempty"`
	// wanted is what was released, as JSON and cut off where it is long. Values of Secrets are masked.
	// +optional
	Wanted string `json:"wanted,omitempty"`
	// found is what is there, likewise. It is empty if nothing is.
	// +optional
	Found string `json:"found,omitempty"`
	// clusters are those that are to have the object: at most 20 of them.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
}

// SourceStatus is what a source was when it was last read.
type SourceStatus struct {
	// origin is where the manifests came from.
	// +optional
	Origin *Origin `json:"origin,omitempty"`
	// hash is that of the manifests, or of the tree that they were in.
	// +optional
	Hash string `json:"hash,omitempty"`
	// time is when the source changed last.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// Origin is where manifests came from.
type Origin struct {
	// url is the address of the repository, without credentials.
	// +optional
	URL string `json:"url,omitempty"`
	// ref is the branch or tag that the commit was found by.
	// +optional
	Ref string `json:"ref,omitempty"`
	// commit is the hash of the commit.
	// +optional
	Commit string `json:"commit,omitempty"`
	// author is the name of its author.
	// +optional
	Author string `json:"author,omitempty"`
	// message is what its author wrote about it.
	// +optional
	Message string `json:"message,omitempty"`
	// time is when it was made.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// TargetStatus tells what runs in a target.
type TargetStatus struct {
	// name is that of the target.
	Name string `json:"name"`
	// revision is the name of the revision that the target is to run, while all of its clusters are to run the same.
	// +optional
	Revision string `json:"revision,omitempty"`
	// liveRevision is the name of the revision that runs in all of its clusters.
	// +optional
	LiveRevision string `json:"liveRevision,omitempty"`
	// sync is OutOfSync if any cluster is, else Unknown if any is, else Synced.
	// +optional
	Sync SyncStatus `json:"sync,omitempty"`
	// health is the worst among the clusters that are known, and Unknown if none is.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// message says why it is so.
	// +optional
	Message string `json:"message,omitempty"`
	// clusters tell what runs in each of the target's clusters.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []TargetClusterStatus `json:"clusters,omitempty"`
}

// TargetClusterStatus tells what runs in a cluster of a target.
type TargetClusterStatus struct {
	// name is that of the cluster.
	Name string `json:"name"`
	// revision is the name of the revision that the cluster is to run.
	// +optional
	Revision string `json:"revision,omitempty"`
	// liveRevision is the name of the revision that it runs.
	// +optional
	LiveRevision string `json:"liveRevision,omitempty"`
	// replicas are the pods of the application itself that the cluster is to run.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// ready are those of them that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// sync is Synced, OutOfSync or Unknown.
	// +optional
	Sync SyncStatus `json:"sync,omitempty"`
	// health is Healthy, Progressing, Degraded, Missing or Unknown.
	// +optional
	Health HealthStatus `json:"health,omitempty"`
	// message says why it is so: of drift, the object and the field, what was wanted and what was found.
	// +optional
	Message string `json:"message,omitempty"`
}

// Variant is what is to run under a name: the application itself, or a copy of it. A variant holds all that its objects are made of, so that
// putting back a recorded list of variants puts back what ran.
type Variant struct {
	// name is primary, canary or baseline.
	Name string `json:"name"`
	// revision is the name of the revision that the variant is made of, in clusters that name none of their own.
	// +optional
	Revision string `json:"revision,omitempty"`
	// hash is that of the revision: an application that was deleted and made anew may have the same names of revisions again.
	// +optional
	Hash string `json:"hash,omitempty"`
	// replicas is how many replicas a copy has of each workload over all clusters together: a number, or a part of those of the
	// application, such as "10%". The application itself has what its manifests say.
	// +optional
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`
	// perCluster counts replicas in each cluster by itself.
	// +optional
	PerCluster bool `json:"perCluster,omitempty"`
	// suffix is what the names of a copy's objects end in, after a hyphen.
	// +optional
	Suffix string `json:"suffix,omitempty"`
	// createService tells that the variant has a Service of its own.
	// +optional
	CreateService bool `json:"createService,omitempty"`
	// labelSelector tells that the variant's label is a part of the selectors of the application's own workloads.
	// +optional
	LabelSelector bool `json:"labelSelector,omitempty"`
	// patches change the objects of a copy.
	// +optional
	// +listType=atomic
	Patches []VariantPatch `json:"patches,omitempty"`
	// traffic is the variant's part of the requests to all clusters together, in percent. Unset, requests are not shared out. Where they are by
	// numbers of pods, it is what the ready pods come to.
	// +optional
	Traffic *int32 `json:"traffic,omitempty"`
	// clusters are those that the variant runs in.
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
	// revision is the name of the revision that the variant is made of here. Unset, it is the variant's.
	// +optional
	Revision string `json:"revision,omitempty"`
	// hash is that of the revision.
	// +optional
	Hash string `json:"hash,omitempty"`
	// weight is the part, in percent, of each workload's replicas that go to the target, as it was when the revision was brought here. Unset, the cluster
	// has the whole number.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// workloads are the replicas that the variant is to have here, by the workload's KIND/NAME among the manifests.
	// +optional
	Workloads map[string]int32 `json:"workloads,omitempty"`
	// ready are the replicas of all workloads together that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// routed tells that the variant has had requests here, so that it is drained before it goes.
	// +optional
	Routed bool `json:"routed,omitempty"`
	// traffic is the part of the requests that arrive here, in percent, that goes to the variant now: no more than there is somebody to answer. In
	// the status of an Application whose requests are shared out by numbers of pods, it is what the ready pods come to.
	// +optional
	Traffic *int32 `json:"traffic,omitempty"`
}
