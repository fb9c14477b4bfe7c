package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Application is what is delivered together: where its manifests come from, the clusters that they go to, and the steps by which a new
// version reaches them.
type Application struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name is a part of the names of revisions, and has at most 50 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is delivered, where and how.
	// +optional
	Spec ApplicationSpec `json:"spec,omitempty"`
	// status tells what runs where.
	// +optional
	Status ApplicationStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ApplicationList is a list of applications.
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []Application `json:"items"`
}

// ApplicationSpec says what is delivered, where and how.
type ApplicationSpec struct {
	// source says where the manifests come from: exactly one of git, selector and inline.
	Source Source `json:"source"`
	// revision pins the application to one of its revisions, such as web-v7: no newer one is released until this is unset. What is pinned
	// is released if it does not run.
	// +optional
	Revision string `json:"revision,omitempty"`
	// targets are the places that the application goes to. Without any, there is one, called "default", for which placement decides.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []Target `json:"targets,omitempty"`
	// pipeline is the way of a new revision, stage by stage. Without it, a new revision goes to all targets at once.
	// +optional
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// planner says which changes go through the pipeline. Unset, a change of a pod template does, and others go to all targets at once.
	// +optional
	Planner *Planner `json:"planner,omitempty"`
	// trigger says when a new revision is released.
	// +optional
	Trigger Trigger `json:"trigger,omitempty"`
	// rollback says when a release that fails is taken back.
	// +optional
	Rollback Rollback `json:"rollback,omitempty"`
	// traffic says how requests are shared out over variants. Unset, stages may not route traffic.
	// +optional
	Traffic *Traffic `json:"traffic,omitempty"`
	// service names the Service in front of the application, which copies of it are made for variants from. Unset, it is the only one among
	// the manifests.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`
	// workloads are those that variants have copies of. Unset, they are all Deployments among the manifests.
	// +optional
	// +listType=atomic
	Workloads []WorkloadReference `json:"workloads,omitempty"`
	// variantLabel is the label that tells the pods of variants apart.
	// +optional
	VariantLabel VariantLabel `json:"variantLabel,omitempty"`
	// drift says what happens when clusters no longer have what was released.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
	// notifications say who is told of what.
	// +optional
	// +listType=map
	// +listMapKey=name
	Notifications []Notification `json:"notifications,omitempty"`
	// prune deletes what earlier revisions brought to a target and the revision that is released does not have. Unset leaves it there.
	// +optional
	Prune bool `json:"prune,omitempty"`
	// suspend stops automation: the source is not looked at, nothing is released or healed. A release that runs waits where it is.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// serviceAccountName names the ServiceAccount in the namespace of the application as which its objects are written. Unset, they are
	// written with the rights that Manifold itself has in the namespace.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// revisionHistoryLimit is how many revisions that are not in use are kept. Defaults to 10. Fewer are kept where all revisions would hold over 256 MiB:
	// of those that are not in use the oldest go first, then ended releases with theirs. What runs, is released or chosen stays.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// releaseHistoryLimit is how many releases that have ended are kept. Defaults to 10.
	// +optional
	ReleaseHistoryLimit *int32 `json:"releaseHistoryLimit,omitempty"`
	// progressDeadlineSeconds is how long a cluster may make no progress before it counts as failed. Defaults to 600. It must be greater
	// than minReadySeconds.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// minReadySeconds is for how long a cluster must report a revision as ready before it counts as done there. Defaults to 0.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
}

// Source says where manifests come from. Exactly one field is set.
type Source struct {
	// git takes them from a git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// selector takes objects of the application's namespace, which users apply themselves. A change of one of them is held back in every
	// cluster until it is released there.
	// +optional
	Selector *ObjectSelector `json:"selector,omitempty"`
	// inline holds them itself.
	// +optional
	Inline *InlineSource `json:"inline,omitempty"`
}

// GitSource is a folder of a git repository.
type GitSource struct {
	// url is the address of the repository: https:// or ssh://, USER@HOST:PATH for SSH, http:// where start --outbound-http allows it, or file://
	// for one on the server's own disk, below a folder that start --outbound-files names. Credentials go to secretRef.
	URL string `json:"url"`
	// ref says what of the repository is wanted. Unset, it is the head of the branch that the repository names as its default.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`
	// path is the folder that the manifests are in, from the root of the repository. Unset, it is the root.
	// +optional
	Path string `json:"path,omitempty"`
	// interval is how often the repository is asked for changes. Defaults to 1m. It is at least 10s.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// secretRef names a Secret in the namespace of the application: username and password for HTTPS, identity and known_hosts for SSH,
	// ca.crt for the server's certificate authority.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// webhook has the repository asked at once when its forge announces a push, by POST /hooks/git/NAMESPACE/NAME of the API server. It is
	// asked after interval all the same.
	// +optional
	Webhook *GitWebhook `json:"webhook,omitempty"`
	// pipecd says what an app.pipecd.yaml in the folder leaves to the configuration of piped.
	// +optional
	Pipecd *PipecdConfig `json:"pipecd,omitempty"`
}

// PipecdConfig is what an app.pipecd.yaml refers to and does not hold.
type PipecdConfig struct {
	// analysisProviders are the addresses of Prometheus servers, by the names that the metrics of stages ANALYSIS have for them.
	// +optional
	AnalysisProviders map[string]string `json:"analysisProviders,omitempty"`
	// scriptImage is the image that the scripts of stages SCRIPT_RUN run in, where the stage names none.
	// +optional
	ScriptImage string `json:"scriptImage,omitempty"`
}

// GitWebhook says who may announce pushes.
type GitWebhook struct {
	// secretRef names a Secret in the namespace of the application that holds, under the key token, what the forge was given as the secret of
	// the webhook.
	SecretRef SecretReference `json:"secretRef"`
}

// GitRef says what of a repository is wanted. At most one field is set.
type GitRef struct {
	// branch follows the head of a branch.
	// +optional
	Branch string `json:"branch,omitempty"`
	// tag is the name of a tag.
	// +optional
	Tag string `json:"tag,omitempty"`
	// semver follows the highest of the tags that are versions in this range, such as ">=1.2.0 <2.0.0".
	// +optional
	Semver string `json:"semver,omitempty"`
	// commit is the full hash of a commit.
	// +optional
	Commit string `json:"commit,omitempty"`
}

// SecretReference names a Secret in the namespace of the object that refers to it.
type SecretReference struct {
	// name is the name of the Secret.
	Name string `json:"name"`
}

// ObjectSelector selects objects of a namespace by their labels, and by their kinds if any are listed.
type ObjectSelector struct {
	// kinds are written KIND, or KIND.GROUP for one that is not built in. Empty selects workloads but bare Pods, Services, ConfigMaps,
	// Secrets, Ingresses and HorizontalPodAutoscalers.
	// +optional
	// +listType=set
	Kinds []string `json:"kinds,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// InlineSource holds manifests.
type InlineSource struct {
	// objects are the manifests, each with its apiVersion, kind and name. They are readable to all who may read the application, so a Secret is
	// not allowed among them.
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects"`
}

// Target is a place that an application goes to: a cluster, or all that a selector selects. They get the same manifests.
type Target struct {
	// name names the target in stages, releases and messages. It must be unique in the application.
	Name string `json:"name"`
	// cluster is the name of a cluster. Exactly one of cluster and clusterSelector is set.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// clusterSelector selects clusters by the labels of the Cluster objects. Who is selected is settled when a release begins.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// follow says when the target follows its clusters: one that comes to match gets what the target runs, and one that no longer does is left,
	// with the next release of the application, or at once, by a release that is about this alone. Defaults to NextRelease.
	// +optional
	Follow FollowPolicy `json:"follow,omitempty"`
	// path is the folder of the target's own manifests, from spec.source.git.path. Unset, it is that folder itself.
	// +optional
	Path string `json:"path,omitempty"`
	// patches change the manifests for this target.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitempty"`
	// weight is the part, in percent, of each workload's replicas that go to the target. Targets without a weight share what the others leave
	// evenly. When no target has one, each gets the whole number.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// FollowPolicy says when a target follows its clusters.
// +enum
type FollowPolicy string

const (
	// FollowNextRelease has clusters join and leave a target with the next release.
	FollowNextRelease FollowPolicy = "NextRelease"
	// FollowImmediately has them join and leave at once, unless the application is suspended, or a release is on its way or has failed.
	FollowImmediately FollowPolicy = "Immediately"
)

// Patch changes manifests, in the words of kustomize.
type Patch struct {
	// target selects the objects that are changed. It may be unset if the patch is a strategic merge patch that names its object.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`
	// patch is a strategic merge patch or a JSON patch (RFC 6902), as YAML or JSON.
	Patch string `json:"patch"`
}

// PatchTarget selects objects. Every field that is set must match.
type PatchTarget struct {
	// group is the API group of the objects.
	// +optional
	Group string `json:"group,omitempty"`
	// version is their API version.
	// +optional
	Version string `json:"version,omitempty"`
	// kind is their kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name is their name, or a regular expression for it.
	// +optional
	Name string `json:"name,omitempty"`
	// labelSelector selects by their labels, as in "app=web,tier!=cache".
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// ServiceReference names a Service among the manifests.
type ServiceReference struct {
	// name is the name of the Service.
	Name string `json:"name"`
}

// WorkloadReference names a workload among the manifests.
type WorkloadReference struct {
	// kind is Deployment or StatefulSet. Defaults to Deployment.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name is the name of the workload.
	Name string `json:"name"`
}

// VariantLabel is a label on pods, and its value for each variant.
type VariantLabel struct {
	// key is the label's key. Defaults to delivery.manifold.dev/variant.
	// +optional
	Key string `json:"key,omitempty"`
	// primaryValue is on the pods of the application itself. Defaults to primary.
	// +optional
	PrimaryValue string `json:"primaryValue,omitempty"`
	// canaryValue is on the pods of the canary. Defaults to canary.
	// +optional
	CanaryValue string `json:"canaryValue,omitempty"`
	// baselineValue is on the pods of the baseline. Defaults to baseline.
	// +optional
	BaselineValue string `json:"baselineValue,omitempty"`
}

// Drift says what happens when clusters no longer have what was released.
type Drift struct {
	// ignore are fields of which a difference does not count.
	// +optional
	// +listType=atomic
	Ignore []DriftIgnore `json:"ignore,omitempty"`
	// heal puts back what was released. Unset, drift is only shown.
	// +optional
	Heal bool `json:"heal,omitempty"`
}

// DriftIgnore names fields of objects. Every one of group, kind and name that is set must match.
type DriftIgnore struct {
	// group is the API group of the objects.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is their kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name is their name.
	// +optional
	Name string `json:"name,omitempty"`
	// jsonPointers are the fields, such as /spec/replicas (RFC 6901).
	// +listType=set
	JSONPointers []string `json:"jsonPointers"`
}

// NotificationType is a form of notices.
// +enum
type NotificationType string

const (
	// NotificationWebhook sends JSON, signed if the Secret has an hmac-key.
	NotificationWebhook NotificationType = "Webhook"
	// NotificationSlack sends a message to an incoming webhook of Slack.
	NotificationSlack NotificationType = "Slack"
)

// NotificationEvent is something that notices are sent about.
// +enum
type NotificationEvent string

const (
	// EventReleaseStarted is sent when a release begins.
	EventReleaseStarted NotificationEvent = "ReleaseStarted"
	// EventReleaseSucceeded is sent when a release has reached all of its targets.
	EventReleaseSucceeded NotificationEvent = "ReleaseSucceeded"
	// EventReleaseFailed is sent when a release fails.
	EventReleaseFailed NotificationEvent = "ReleaseFailed"
	// EventReleaseCancelled is sent when somebody has cancelled a release.
	EventReleaseCancelled NotificationEvent = "ReleaseCancelled"
	// EventReleaseRolledBack is sent when a release has been taken back.
	EventReleaseRolledBack NotificationEvent = "ReleaseRolledBack"
	// EventApprovalRequired is sent when a stage begins to wait for approvals.
	EventApprovalRequired NotificationEvent = "ApprovalRequired"
	// EventApproved is sent when a stage has the approvals that it needs.
	EventApproved NotificationEvent = "Approved"
	// EventOutOfSync is sent when a target no longer has what was released.
	EventOutOfSync NotificationEvent = "OutOfSync"
	// EventDegraded is sent when a target is no longer healthy.
	EventDegraded NotificationEvent = "Degraded"
)

// NotificationEvents are all that notices are sent about.
func NotificationEvents() []NotificationEvent {
	return []NotificationEvent{
		EventReleaseStarted, EventReleaseSucceeded, EventReleaseFailed, EventReleaseCancelled, EventReleaseRolledBack,
		EventApprovalRequired, EventApproved, EventOutOfSync, EventDegraded,
	}
}

// Notification says who is told of what.
type Notification struct {
	// name names it in messages. It must be unique in the application.
	Name string `json:"name"`
	// type is Webhook or Slack. Defaults to Webhook.
	// +optional
	Type NotificationType `json:"type,omitempty"`
	// events are what notices are sent about. Empty stands for all.
	// +optional
	// +listType=set
	Events []NotificationEvent `json:"events,omitempty"`
	// secretRef names a Secret in the namespace of the application that holds the address under the key url.
	SecretRef SecretReference `json:"secretRef"`
}
