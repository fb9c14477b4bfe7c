package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Approve,verb=create,subresource=approve,input=ReleaseApproval,result=Release
// +genclient:method=Cancel,verb=create,subresource=cancel,input=ReleaseCancellation,result=Release
// +genclient:method=Skip,verb=create,subresource=skip,input=ReleaseSkip,result=Release
// +genclient:method=Retry,verb=create,subresource=retry,input=ReleaseRetry,result=Release
// +genclient:method=Rollback,verb=create,subresource=rollback,input=ReleaseRollback,result=Release
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Release brings one revision of an Application to its clusters. Its status shows how far it has got, stage by stage and cluster by cluster.
type Release struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which revision is released to which targets. It cannot be changed.
	// +optional
	Spec ReleaseSpec `json:"spec,omitempty"`
	// status shows how far the release has got.
	// +optional
	Status ReleaseStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseList is a list of releases.
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []Release `json:"items"`
}

// ReleaseStrategy is a way to release.
// +enum
type ReleaseStrategy string

const (
	// StrategyQuickSync goes to all targets at once.
	StrategyQuickSync ReleaseStrategy = "QuickSync"
	// StrategyPipeline goes through the stages of the pipeline.
	StrategyPipeline ReleaseStrategy = "Pipeline"
)

// ReleaseSpec says what is released.
type ReleaseSpec struct {
	// application is the name of the Application, in the same namespace.
	Application string `json:"application"`
	// revision is the name of the ApplicationRevision.
	Revision string `json:"revision"`
	// strategy is QuickSync, which goes to all targets at once, or Pipeline, which goes through the stages of the application's pipeline. If unset, the
	// planner of the application decides.
	// +optional
	Strategy ReleaseStrategy `json:"strategy,omitempty"`
	// targets are the names of the application's targets that the revision is released to. If empty, it is released to all.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// rollbackOf is the name of the release that this one rolls back.
	// +optional
	RollbackOf string `json:"rollbackOf,omitempty"`
	// triggeredBy says why the release was made, and by whom.
	// +optional
	TriggeredBy ReleaseTrigger `json:"triggeredBy,omitempty"`
}

// Whole reports whether a release is for all targets of its application.
func (s *ReleaseSpec) Whole() bool { return len(s.Targets) == 0 }

// Follows reports whether automation has made the release for targets to follow their clusters, and for nothing else.
func (r *Release) Follows() bool {
	return r.Annotations[AnnotationFollows] != "" && !r.Spec.TriggeredBy.ByPerson()
}

// DeliveredAs is the name of the revision whose application file says how what the release leaves is delivered, where the Application does not say it itself.
func (r *Release) DeliveredAs() string {
	if r.Status.DeliveryRevision != "" {
		return r.Status.DeliveryRevision
	}
	return r.Spec.Revision
}

// ReleaseCause is a reason for a release.
// +enum
type ReleaseCause string

const (
	// CauseCommand is somebody who asked for it.
	CauseCommand ReleaseCause = "Command"
	// CauseRevision is a new revision of the application.
	CauseRevision ReleaseCause = "Revision"
	// CausePin is a revision that the application is pinned to.
	CausePin ReleaseCause = "Pin"
	// CauseDrift is a target that no longer has what was released.
	CauseDrift ReleaseCause = "Drift"
	// CauseTargets is a change of the application's targets or of their clusters.
	CauseTargets ReleaseCause = "Targets"
	// CausePromotion is the environment before this one.
	CausePromotion ReleaseCause = "Promotion"
)

// ReleaseTrigger says why a release was made.
type ReleaseTrigger struct {
	// cause is Command, Revision, Pin, Drift, Targets or Promotion. Defaults to Command.
	// +optional
	Cause ReleaseCause `json:"cause,omitempty"`
	// user is the name of the user who made the release. The server sets it.
	// +optional
	User string `json:"user,omitempty"`
	// message explains the reason to people.
	// +optional
	Message string `json:"message,omitempty"`
}

// ByPerson reports whether somebody has asked for the release, rather than automation: by a command, or by promoting what another environment runs.
func (t ReleaseTrigger) ByPerson() bool {
	return t.Cause == "" || t.Cause == CauseCommand || t.Cause == CausePromotion
}

// ReleasePhase tells how far a release is.
// +enum
type ReleasePhase string

const (
	// ReleasePending is a release that has not begun: an earlier one still runs, or the application is suspended.
	ReleasePending ReleasePhase = "Pending"
	// ReleaseRunning is a release on its way.
	ReleaseRunning ReleasePhase = "Running"
	// ReleaseRollingBack is a release that is being taken back.
	ReleaseRollingBack ReleasePhase = "RollingBack"
	// ReleaseSucceeded is a release that has reached its targets.
	ReleaseSucceeded ReleasePhase = "Succeeded"
	// ReleaseFailed is a release that has failed, and has not been taken back, or could not be.
	ReleaseFailed ReleasePhase = "Failed"
	// ReleaseRolledBack is a release that has been taken back.
	ReleaseRolledBack ReleasePhase = "RolledBack"
	// ReleaseCancelled is a release that somebody has cancelled.
	ReleaseCancelled ReleasePhase = "Cancelled"
	// ReleaseSuperseded is a release that a newer revision has taken the place of.
	ReleaseSuperseded ReleasePhase = "Superseded"
)

// Ended reports whether nothing more happens by itself in the phase.
func (p ReleasePhase) Ended() bool {
	switch p {
	case ReleaseSucceeded, ReleaseFailed, ReleaseRolledBack, ReleaseCancelled, ReleaseSuperseded:
		return true
	}
	return false
}

// StagePhase tells how far a stage is.
// +enum
type StagePhase string

const (
	// StageNotStarted is a stage that has not begun.
	StageNotStarted StagePhase = "NotStarted"
	// StageRunning is a stage on its way.
	StageRunning StagePhase = "Running"
	// StageSucceeded is a stage that is done.
	StageSucceeded StagePhase = "Succeeded"
	// StageFailed is a stage that has failed.
	StageFailed StagePhase = "Failed"
	// StageCancelled is a stage that was cancelled on its way.
	StageCancelled StagePhase = "Cancelled"
	// StageSkipped is a stage that was left out.
	StageSkipped StagePhase = "Skipped"
	// StageExited is a stage that is done and ends the pipeline with success.
	StageExited StagePhase = "Exited"
)

// Ended reports whether nothing more happens by itself in the phase.
func (p StagePhase) Ended() bool {
	switch p {
	case StageSucceeded, StageFailed, StageCancelled, StageSkipped, StageExited:
		return true
	}
	return false
}

// TargetPhase tells how far a cluster is in a stage.
// +enum
type TargetPhase string

const (
	// TargetPending is a cluster that has not begun: its wave has not.
	TargetPending TargetPhase = "Pending"
	// TargetRunning is a cluster on its way.
	TargetRunning TargetPhase = "Running"
	// TargetSucceeded is a cluster that has proved that it is done.
	TargetSucceeded TargetPhase = "Succeeded"
	// TargetFailed is a cluster that has failed.
	TargetFailed TargetPhase = "Failed"
	// TargetUnreachable is a cluster that cannot be reached and is waited for.
	TargetUnreachable TargetPhase = "Unreachable"
	// TargetSkipped is a cluster that was left out, or has left.
	TargetSkipped TargetPhase = "Skipped"
)

// Ended reports whether nothing more happens by itself in the phase.
func (p TargetPhase) Ended() bool {
	return p == TargetSucceeded || p == TargetFailed || p == TargetSkipped
}

// ReleaseComplete is the condition type of a Release that is True once it has succeeded, False once it has ended otherwise, and Unknown
// before.
const ReleaseComplete = "Complete"

// ReleaseStatus shows how far a release has got.
type ReleaseStatus struct {
	// observedGeneration is the generation of the release that the rest is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Pending, Running, RollingBack, Succeeded, Failed, RolledBack, Cancelled or Superseded.
	// +optional
	Phase ReleasePhase `json:"phase,omitempty"`
	// message says what the release is waiting for, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// sequence is the position of the release among those of the application that have begun, counted from 1. What the release with the highest sequence says
	// is what should run.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// startTime is when the release began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when the release ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// plan is what was decided when the release began. Later changes of the Application do not change it.
	// +optional
	Plan *ReleasePlan `json:"plan,omitempty"`
	// before are the variants that ran when the release began. A rollback restores them.
	// +optional
	// +listType=map
	// +listMapKey=name
	Before []Variant `json:"before,omitempty"`
	// beforeRevision is the name of the last revision that had been released successfully by then. It is empty for the first release.
	// +optional
	BeforeRevision string `json:"beforeRevision,omitempty"`
	// deliveryRevision is the name of the revision whose application file says how variants are delivered, where the Application does not say it itself: that of
	// the release, and once the release is taken back, the one of before.
	// +optional
	DeliveryRevision string `json:"deliveryRevision,omitempty"`
	// beforeDeliveryRevision is the name of the revision whose application file says how before was delivered. It is empty for the first release.
	// +optional
	BeforeDeliveryRevision string `json:"beforeDeliveryRevision,omitempty"`
	// variants are what should run now.
	// +optional
	// +listType=map
	// +listMapKey=name
	Variants []Variant `json:"variants,omitempty"`
	// edits count for each cluster how often the release has changed what should run there. Manifold uses them to recognise outdated reports of clusters.
	// +optional
	Edits map[string]int64 `json:"edits,omitempty"`
	// endsAs is the phase that the release will have after its rollback.
	// +optional
	EndsAs ReleasePhase `json:"endsAs,omitempty"`
	// stages show how far each stage has got, in order. A rollback is an additional stage at the end.
	// +optional
	// +listType=map
	// +listMapKey=id
	Stages []StageStatus `json:"stages,omitempty"`
	// requests are the approvals, cancellations and the like that users have made by the subresources of the release. Only the server writes them.
	// +optional
	// +listType=atomic
	Requests []ReleaseRequest `json:"requests,omitempty"`
	// conditions show the state of the release.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ReleasePlan is what was decided when a release began.
type ReleasePlan struct {
	// strategy is QuickSync or Pipeline.
	Strategy ReleaseStrategy `json:"strategy"`
	// reason says why this strategy was chosen.
	// +optional
	Reason string `json:"reason,omitempty"`
	// stages are the stages of the release, each with its id.
	// +listType=atomic
	Stages []Stage `json:"stages"`
	// targets are the targets of the release, with the clusters that they had when it began.
	// +listType=map
	// +listMapKey=name
	Targets []ResolvedTarget `json:"targets"`
	// plugins are those of the application, with the deploy targets that the release goes to.
	// +optional
	// +listType=map
	// +listMapKey=name
	Plugins []PlannedPlugin `json:"plugins,omitempty"`
	// versions are what plugins say that the revision consists of.
	// +optional
	// +listType=atomic
	Versions []ArtifactVersion `json:"versions,omitempty"`
	// previews are what plugins say, before anything is done, that the release would change. What exactly is not shown: it may be secret.
	// +optional
	// +listType=map
	// +listMapKey=plugin
	// +listMapKey=deployTarget
	Previews []PluginPreview `json:"previews,omitempty"`
	// rollback says when the release is rolled back if it fails.
	Rollback Rollback `json:"rollback"`
	// prune deletes objects that the revision does not have.
	// +optional
	Prune bool `json:"prune,omitempty"`
	// progressDeadlineSeconds is how many seconds a cluster may make no progress.
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds"`
	// minReadySeconds is how many seconds the revision must be ready in a cluster.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
}

// PlannedPlugin is a plugin that takes part in a release.
type PlannedPlugin struct {
	// name is that of the Plugin.
	Name string `json:"name"`
	// deployTargets are the names of those of its deploy targets that the release goes to.
	// +optional
	// +listType=atomic
	DeployTargets []string `json:"deployTargets,omitempty"`
}

// PluginPreview is what a plugin says that a release would change in one of its deploy targets.
type PluginPreview struct {
	// plugin is the name of the plugin.
	Plugin string `json:"plugin"`
	// deployTarget is the name of the deploy target.
	DeployTarget string `json:"deployTarget"`
	// summary says what would change, or why that is not known.
	// +optional
	Summary string `json:"summary,omitempty"`
	// noChange says that nothing would.
	// +optional
	NoChange bool `json:"noChange,omitempty"`
	// unsupported says that the plugin does not tell what would change, nor how the revision differs from the one before.
	// +optional
	Unsupported bool `json:"unsupported,omitempty"`
	// unknown says that the plugin should have told and has not; summary says why.
	// +optional
	Unknown bool `json:"unknown,omitempty"`
	// differences are what the revision changes of the one before, at most 20, as plugins with the service Drift say.
	// +optional
	// +listType=atomic
	Differences []PluginDifference `json:"differences,omitempty"`
	// differenceCount is the number of all of them.
	// +optional
	DifferenceCount int32 `json:"differenceCount,omitempty"`
}

// ArtifactVersion is what a plugin says that a revision consists of.
type ArtifactVersion struct {
	// plugin is the name of the plugin that says so.
	Plugin string `json:"plugin"`
	// kind is what it is: CONTAINER_IMAGE, S3_OBJECT, GIT_SOURCE or TERRAFORM_MODULE, or unset where the plugin does not say.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name is its name.
	// +optional
	Name string `json:"name,omitempty"`
	// version is its version, such as the tag of an image.
	// +optional
	Version string `json:"version,omitempty"`
	// url is where it is to be found.
	// +optional
	URL string `json:"url,omitempty"`
}

// ResolvedTarget is a target with its clusters.
type ResolvedTarget struct {
	// name is that of the target.
	Name string `json:"name"`
	// clusters are the names of its clusters, sorted.
	// +optional
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// weight is the percentage of the replicas of each workload that the target gets.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// StageStatus shows how far a stage has got.
type StageStatus struct {
	// id is that of the stage.
	ID string `json:"id"`
	// name is that of the stage.
	Name string `json:"name"`
	// phase is NotStarted, Running, Succeeded, Failed, Cancelled, Skipped or Exited.
	// +optional
	Phase StagePhase `json:"phase,omitempty"`
	// attempt counts how often the stage has been started. Each retry adds one.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// startTime is when the attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// message says what the stage is waiting for, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// metadata is internal data of the stage.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// approvers are the users who have approved this attempt.
	// +optional
	// +listType=set
	Approvers []string `json:"approvers,omitempty"`
	// metrics show what an analysis has measured so far.
	// +optional
	// +listType=map
	// +listMapKey=name
	Metrics []MetricStatus `json:"metrics,omitempty"`
	// targets show how far each cluster of the stage has got.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=cluster
	Targets []StageTargetStatus `json:"targets,omitempty"`
}

// MetricStatus shows the results of one metric, request or Job of an analysis.
type MetricStatus struct {
	// name is the field and position of the metric in the options of the stage, such as metrics-0, https-1 or jobs-0, or restarts.
	Name string `json:"name"`
	// checks is how often it was measured.
	// +optional
	Checks int32 `json:"checks,omitempty"`
	// failures is how many of these measurements were bad.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// lastTime is when it was last measured.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// message says what the last measurement has found.
	// +optional
	Message string `json:"message,omitempty"`
}

// StageTargetStatus shows how far a cluster has got in a stage.
type StageTargetStatus struct {
	// name is that of the target.
	Name string `json:"name"`
	// cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// wave is the position of its wave, counted from 0.
	// +optional
	Wave int32 `json:"wave,omitempty"`
	// retired is set if the cluster no longer belongs to a target, so that the application is removed from it.
	// +optional
	Retired bool `json:"retired,omitempty"`
	// phase is Pending, Running, Succeeded, Failed, Unreachable or Skipped.
	// +optional
	Phase TargetPhase `json:"phase,omitempty"`
	// message says what the cluster is waiting for, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// revision is the name of the revision that the cluster reports.
	// +optional
	Revision string `json:"revision,omitempty"`
	// replicas is the number of pods that should run there.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// ready is the number of these pods that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// workloads are the replicas that should run there, by workload, as KIND/NAME.
	// +optional
	Workloads map[string]int32 `json:"workloads,omitempty"`
	// shares are the percentages of the requests in this cluster that each variant gets.
	// +optional
	Shares map[string]int32 `json:"shares,omitempty"`
	// drainedSince is when the variant that the stage removes got its last requests here.
	// +optional
	DrainedSince *metav1.Time `json:"drainedSince,omitempty"`
	// progress is a number that grows whenever the cluster makes progress.
	// +optional
	Progress int64 `json:"progress,omitempty"`
	// startTime is when the change was sent to the cluster.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// progressTime is when it last made progress.
	// +optional
	ProgressTime *metav1.Time `json:"progressTime,omitempty"`
	// readySince is since when everything has been ready.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`
	// endTime is when the cluster was done.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}

// RequestType is something that people ask of a release.
// +enum
type RequestType string

const (
	// RequestApprove agrees that a stage goes on.
	RequestApprove RequestType = "Approve"
	// RequestCancel ends a release.
	RequestCancel RequestType = "Cancel"
	// RequestSkip leaves out a stage.
	RequestSkip RequestType = "Skip"
	// RequestRetry begins a failed stage once more.
	RequestRetry RequestType = "Retry"
	// RequestRollback takes a release back.
	RequestRollback RequestType = "Rollback"
)

// ReleaseRequest is an approval, cancellation or the like that a user has made.
type ReleaseRequest struct {
	// type is Approve, Cancel, Skip, Retry or Rollback.
	Type RequestType `json:"type"`
	// stage is the id of the stage that the request is for.
	// +optional
	Stage string `json:"stage,omitempty"`
	// attempt is the attempt of the stage that the request is for.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// targets are the names of the targets that the request is for. If empty, it is for all.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// rollback is set for a Cancel that also rolls back.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
	// user is the name of the user who made the request.
	User string `json:"user"`
	// groups are the groups of that user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// comment is what the user has written about it.
	// +optional
	Comment string `json:"comment,omitempty"`
	// time is when the request was made.
	Time metav1.Time `json:"time"`
}
