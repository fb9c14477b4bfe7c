package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Approve,verb=create,subresource=approve,input=ReleaseApproval,result=Release
// +genclient:method=Cancel,verb=create,subresource=cancel,input=ReleaseCancellation,result=Release
// +genclient:method=Skip,verb=create,subresource=skip,input=ReleaseSkip,result=Release
// +genclient:method=Retry,verb=create,subresource=retry,input=ReleaseRetry,result=Release
// +genclient:method=Rollback,verb=create,subresource=rollback,input=ReleaseRollback,result=Release
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Release is one deployment of one revision of an Application.
type Release struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is released. It cannot be changed.
	// +optional
	Spec ReleaseSpec `json:"spec,omitempty"`
	// status tells how far the release is.
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
	// strategy is QuickSync or Pipeline. Unset, the planner of the application decides.
	// +optional
	Strategy ReleaseStrategy `json:"strategy,omitempty"`
	// targets are the names of those of the application's targets that the revision is released to. Empty stands for all.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// rollbackOf is the name of the release that this one takes back.
	// +optional
	RollbackOf string `json:"rollbackOf,omitempty"`
	// triggeredBy says why there is the release, and who made it.
	// +optional
	TriggeredBy ReleaseTrigger `json:"triggeredBy,omitempty"`
}

// Whole reports whether a release is for all targets of its application.
func (s *ReleaseSpec) Whole() bool { return len(s.Targets) == 0 }

// Follows reports whether automation has made the release for targets to follow their clusters, and for nothing else.
func (r *Release) Follows() bool {
	return r.Annotations[AnnotationFollows] != "" && !r.Spec.TriggeredBy.ByPerson()
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

// ReleaseTrigger says why there is a release.
type ReleaseTrigger struct {
	// cause is Command, Revision, Pin, Drift, Targets or Promotion. Defaults to Command.
	// +optional
	Cause ReleaseCause `json:"cause,omitempty"`
	// user is the name of who made the release. The server writes it.
	// +optional
	User string `json:"user,omitempty"`
	// message is for people to read.
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

// ReleaseStatus tells how far a release is.
type ReleaseStatus struct {
	// observedGeneration is the generation of the release that the rest is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Pending, Running, RollingBack, Succeeded, Failed, RolledBack, Cancelled or Superseded.
	// +optional
	Phase ReleasePhase `json:"phase,omitempty"`
	// message says what the release waits for, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// sequence counts the releases of the application that have begun, from 1. The one with the highest says what the application is to run.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// startTime is when it began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// plan is what was decided when the release began. It does not follow the application.
	// +optional
	Plan *ReleasePlan `json:"plan,omitempty"`
	// before are the variants that were there when the release began. A rollback puts them back.
	// +optional
	// +listType=map
	// +listMapKey=name
	Before []Variant `json:"before,omitempty"`
	// beforeRevision is the name of the revision that had last been released with success then. It is empty for the first release.
	// +optional
	BeforeRevision string `json:"beforeRevision,omitempty"`
	// variants are what the application is to run now.
	// +optional
	// +listType=map
	// +listMapKey=name
	Variants []Variant `json:"variants,omitempty"`
	// edits count, by cluster, how often the release has changed what the cluster is to run. What a cluster reports proves something only about
	// the edit that it names.
	// +optional
	Edits map[string]int64 `json:"edits,omitempty"`
	// endsAs is the phase that the release ends in once it has been taken back.
	// +optional
	EndsAs ReleasePhase `json:"endsAs,omitempty"`
	// stages tell how far each is, in their order. A rollback is a stage of its own, behind the others.
	// +optional
	// +listType=map
	// +listMapKey=id
	Stages []StageStatus `json:"stages,omitempty"`
	// requests are what people have asked for by the subresources of the release. The server alone writes them.
	// +optional
	// +listType=atomic
	Requests []ReleaseRequest `json:"requests,omitempty"`
	// conditions tell how the release is.
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
	// reason says why it is that.
	// +optional
	Reason string `json:"reason,omitempty"`
	// stages are those of the release, each with its id.
	// +listType=atomic
	Stages []Stage `json:"stages"`
	// targets are the clusters that the release is about, as they were when it began.
	// +listType=map
	// +listMapKey=name
	Targets []ResolvedTarget `json:"targets"`
	// rollback says when a release that fails is taken back.
	Rollback Rollback `json:"rollback"`
	// prune deletes what the revision does not have.
	// +optional
	Prune bool `json:"prune,omitempty"`
	// progressDeadlineSeconds is how long a cluster may make no progress.
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds"`
	// minReadySeconds is for how long a cluster must report the revision as ready.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
}

// ResolvedTarget is a target with its clusters.
type ResolvedTarget struct {
	// name is that of the target.
	Name string `json:"name"`
	// clusters are the names of its clusters, sorted.
	// +optional
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// weight is the part, in percent, of each workload's replicas that go to the target.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// StageStatus tells how far a stage is.
type StageStatus struct {
	// id is that of the stage.
	ID string `json:"id"`
	// name is that of the stage.
	Name string `json:"name"`
	// phase is NotStarted, Running, Succeeded, Failed, Cancelled, Skipped or Exited.
	// +optional
	Phase StagePhase `json:"phase,omitempty"`
	// attempt counts how often the stage has begun. Somebody who retries it makes it one more.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// startTime is when the attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// message says what the stage waits for, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// metadata is what the stage has noted for itself.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// approvers are the users whose approval of this attempt counts.
	// +optional
	// +listType=set
	Approvers []string `json:"approvers,omitempty"`
	// metrics tell what an analysis has found so far.
	// +optional
	// +listType=map
	// +listMapKey=name
	Metrics []MetricStatus `json:"metrics,omitempty"`
	// targets tell how far each cluster of the stage is.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=cluster
	Targets []StageTargetStatus `json:"targets,omitempty"`
}

// MetricStatus tells what an analysis has found of one of its metrics, requests or Jobs.
type MetricStatus struct {
	// name is metrics, https or jobs and a position from 0, such as metrics-0, or restarts.
	Name string `json:"name"`
	// checks is how often it was looked at.
	// +optional
	Checks int32 `json:"checks,omitempty"`
	// failures is how often it was bad.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// lastTime is when it was last looked at.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// message says what was found then.
	// +optional
	Message string `json:"message,omitempty"`
}

// StageTargetStatus tells how far a cluster is in a stage.
type StageTargetStatus struct {
	// name is that of the target.
	Name string `json:"name"`
	// cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// wave is the position of its wave, from 0.
	// +optional
	Wave int32 `json:"wave,omitempty"`
	// retired is set where the cluster is no target any more, and the application leaves it.
	// +optional
	Retired bool `json:"retired,omitempty"`
	// phase is Pending, Running, Succeeded, Failed, Unreachable or Skipped.
	// +optional
	Phase TargetPhase `json:"phase,omitempty"`
	// message says what the cluster waits for, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// revision is the name of the revision that the cluster reports.
	// +optional
	Revision string `json:"revision,omitempty"`
	// replicas are the pods that are wanted of it.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// ready are those of them that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// workloads are the replicas that are wanted, by the workload's KIND/NAME among the manifests.
	// +optional
	Workloads map[string]int32 `json:"workloads,omitempty"`
	// shares are the percentages of the requests that arrive here, by variant.
	// +optional
	Shares map[string]int32 `json:"shares,omitempty"`
	// drainedSince is since when the variant that the stage takes away gets no more requests here.
	// +optional
	DrainedSince *metav1.Time `json:"drainedSince,omitempty"`
	// progress grows whenever the cluster gets further.
	// +optional
	Progress int64 `json:"progress,omitempty"`
	// startTime is when the cluster was told.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// progressTime is when it last made progress.
	// +optional
	ProgressTime *metav1.Time `json:"progressTime,omitempty"`
	// readySince is since when it reports that all is ready.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`
	// endTime is when it was done.
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

// ReleaseRequest is what somebody has asked of a release.
type ReleaseRequest struct {
	// type is Approve, Cancel, Skip, Retry or Rollback.
	Type RequestType `json:"type"`
	// stage is the id of the stage that it is about.
	// +optional
	Stage string `json:"stage,omitempty"`
	// attempt is the attempt of the stage that it is about.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// targets are the names of the targets that it is about. Empty stands for all.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// rollback is set on Cancel if what the release has done is to be taken back.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
	// user is the name of who asked.
	User string `json:"user"`
	// groups are those of who asked.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// comment is what they said.
	// +optional
	Comment string `json:"comment,omitempty"`
	// time is when they asked.
	Time metav1.Time `json:"time"`
}
