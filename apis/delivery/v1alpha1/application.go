package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:method=Preview,verb=create,subresource=preview,input=ApplicationPreview,result=ApplicationPreview
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Application is a set of manifests that are released together. It says where the manifests come from, which clusters they go to, and in which steps a new
// version reaches these clusters. Manifold makes an ApplicationRevision of every change, and a Release that brings it to the clusters.
type Application struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata. The name becomes part of the names of revisions, so it has at most 50 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is released, to which clusters, and how.
	// +optional
	Spec ApplicationSpec `json:"spec,omitempty"`
	// status shows which revision runs in which cluster, and whether it is healthy.
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

// ApplicationSpec says what is released, to which clusters, and how.
type ApplicationSpec struct {
	// source says where the manifests come from. Set exactly one of git, selector and inline.
	Source Source `json:"source"`
	// revision pins the application to one of its revisions, such as web-v7. That revision is released if it does not run yet, and no newer one is released
	// until this field is unset.
	// +optional
	Revision string `json:"revision,omitempty"`
	// targets are the clusters that the application goes to, one by one or in groups. Without any, there is one target, called "default", whose clusters are
	// chosen as for any other workload, by the annotation manifold.dev/clusters or a PlacementPolicy. Where an app.pipecd.yaml names targets, they must be among
	// these, by the name of the cluster or of the target; without any here, they are those of the file.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []Target `json:"targets,omitempty"`
	// pipeline lists the stages that the release of a new revision goes through. Without it, a new revision goes to all targets at once.
	// +optional
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// planner says which changes go through the pipeline. If unset, changes of pod templates do, and all other changes go to all targets at once.
	// +optional
	Planner *Planner `json:"planner,omitempty"`
	// plugins are the programs that run stages of the application, beside those that are built in. Whoever writes the application needs the right to use
	// each of them: the verb use on plugins in delivery.manifold.dev.
	// +optional
	// +listType=map
	// +listMapKey=name
	Plugins []ApplicationPlugin `json:"plugins,omitempty"`
	// pluginsOnly says that nothing but plugins delivers the application: its folder needs no manifests of Kubernetes, all of its stages are of plugins, also
	// those whose names are of stages that are built in, and it has no targets.
	// +optional
	PluginsOnly bool `json:"pluginsOnly,omitempty"`
	// trigger says when a new revision is released.
	// +optional
	Trigger Trigger `json:"trigger,omitempty"`
	// rollback says when a failed release is rolled back.
	// +optional
	Rollback Rollback `json:"rollback,omitempty"`
	// traffic says how requests are split between the variants (primary, canary and baseline). If unset, the pipeline may not have a stage
	// K8S_TRAFFIC_ROUTING.
	// +optional
	Traffic *Traffic `json:"traffic,omitempty"`
	// service names the Service that users of the application call. The Services of canary and baseline are copies of it. If unset, it is the only Service
	// among the manifests.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`
	// workloads are those of which canary and baseline have copies. If unset, these are all Deployments among the manifests.
	// +optional
	// +listType=atomic
	Workloads []WorkloadReference `json:"workloads,omitempty"`
	// variantLabel is the label on pods that says which variant they belong to.
	// +optional
	VariantLabel VariantLabel `json:"variantLabel,omitempty"`
	// drift says what happens when somebody changes or deletes objects of the application.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
	// notifications say who is notified of which events.
	// +optional
	// +listType=map
	// +listMapKey=name
	Notifications []Notification `json:"notifications,omitempty"`
	// prune says whether objects are deleted that an earlier revision had and the revision that is released no longer has, however it is released. If unset,
	// they stay, except that quickSync.prune of an app.pipecd.yaml has releases without the pipeline delete them, and prune of a stage has that stage do so.
	// +optional
	Prune *bool `json:"prune,omitempty"`
	// suspend stops all automation: the source is not checked for changes, and nothing is released or healed. A release that is in progress pauses.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// serviceAccountName names the ServiceAccount, in the namespace of the application, that creates, changes and deletes the objects of the application.
	// If unset, Manifold does so with rights of its own, which are those of the ClusterRole "edit" in the namespace.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// revisionHistoryLimit is the number of revisions to keep that are not in use. Defaults to 10. Fewer are kept if all revisions together would be
	// larger than 256 MiB: the oldest unused ones are deleted first, then finished releases with their revisions. A revision that runs, is being
	// released, or is pinned is never deleted.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// releaseHistoryLimit is the number of finished releases to keep. Defaults to 10.
	// +optional
	ReleaseHistoryLimit *int32 `json:"releaseHistoryLimit,omitempty"`
	// progressDeadlineSeconds is how many seconds a cluster may make no progress before it counts as failed. Defaults to 600. It must be greater
	// than minReadySeconds.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// minReadySeconds is how many seconds a revision must be ready in a cluster before the rollout there counts as done. Defaults to 0.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
}

// ApplicationPlugin is a plugin that an application uses.
type ApplicationPlugin struct {
	// name is that of the Plugin.
	Name string `json:"name"`
	// deployTargets are the names of those of its deploy targets that the application goes to. If empty, they are those that spec.plugins of an
	// app.pipecd.yaml names, or all that the Plugin has.
	// +optional
	// +listType=set
	DeployTargets []string `json:"deployTargets,omitempty"`
	// config is what the plugin reads about the application: what stands below its name in spec.plugins of an app.pipecd.yaml. It may be set only for
	// applications without such a file, which are those whose source is not git.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// Source says where manifests come from. Exactly one field is set.
type Source struct {
	// git reads the manifests from a git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// selector selects objects in the namespace of the application that you apply yourself. When you change one of them, every cluster keeps the old
	// version until the change is released there. One that is new runs in a cluster once it is released there for the first time.
	// +optional
	Selector *ObjectSelector `json:"selector,omitempty"`
	// inline has the manifests in the Application itself.
	// +optional
	Inline *InlineSource `json:"inline,omitempty"`
}

// GitSource is a folder of a git repository.
type GitSource struct {
	// url is the address of the repository: https:// or ssh://, USER@HOST:PATH for SSH, http:// where start --outbound-http allows it, or file://
	// for one on the server's own disk, below a folder that start --outbound-files names. Credentials go to secretRef.
	URL string `json:"url"`
	// ref is the branch, tag, version or commit to use. If unset, it is the head of the repository's default branch.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`
	// path is the folder with the manifests, relative to the root of the repository. Defaults to the root.
	// +optional
	Path string `json:"path,omitempty"`
	// interval is how often the repository is polled for changes. Defaults to 1m, and must be at least 10s.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// secretRef names a Secret in the namespace of the application: username and password for HTTPS, identity and known_hosts for SSH, and also
	// password if identity has a passphrase, ca.crt for the server's certificate authority.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// webhook lets GitHub, GitLab or another git server announce pushes, so that they are noticed at once: it sends them to /hooks/git/NAMESPACE/NAME of the
	// API server. The repository is polled every interval all the same.
	// +optional
	Webhook *GitWebhook `json:"webhook,omitempty"`
	// pipecd says which application file of PipeCD is read in the folder, and has what that refers to and PipeCD reads from the configuration of piped.
	// +optional
	Pipecd *PipecdConfig `json:"pipecd,omitempty"`
}

// PipecdConfig is what an app.pipecd.yaml does not hold: how it is called, and what it refers to.
type PipecdConfig struct {
	// file is the name of the application file in the folder, without a path: NAME.pipecd.yaml, or .pipe.yaml. Defaults to app.pipecd.yaml, which need not be
	// there. A file that is named has to be.
	// +optional
	File string `json:"file,omitempty"`
	// analysisProviders are the addresses of Prometheus servers, by the names that the metrics of stages ANALYSIS have for them.
	// +optional
	AnalysisProviders map[string]string `json:"analysisProviders,omitempty"`
	// analysisSecrets are the names of Secrets in the namespace of the application with the credentials for these servers, by the same names. Whoever
	// names one, or changes the address of its server, needs the right to get it. The file itself may name a Secret only for a server that has it here.
	// +optional
	AnalysisSecrets map[string]string `json:"analysisSecrets,omitempty"`
	// scriptImage is the image that the scripts of stages SCRIPT_RUN run in, where the stage names none.
	// +optional
	ScriptImage string `json:"scriptImage,omitempty"`
}

// GitWebhook says who may announce pushes.
type GitWebhook struct {
	// secretRef names a Secret in the namespace of the application. Its key token holds the secret that was entered for the webhook at the git
	// server.
	SecretRef SecretReference `json:"secretRef"`
}

// GitRef names a state of a repository. Set at most one field.
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

// SecretReference names a Secret in the namespace of the object that refers to it. Whoever names it, or changes what it is used for, needs the right to get it.
type SecretReference struct {
	// name is the name of the Secret.
	Name string `json:"name"`
}

// ObjectSelector selects objects of a namespace by their labels, and by their kinds if any are listed.
type ObjectSelector struct {
	// kinds are the kinds to select, as KIND, or KIND.GROUP for custom resources. If empty, these are all kinds of workloads except bare Pods, and
	// Services, ConfigMaps, Secrets, Ingresses and HorizontalPodAutoscalers.
	// +optional
	// +listType=set
	Kinds []string `json:"kinds,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// InlineSource holds manifests.
type InlineSource struct {
	// objects are the manifests, each with apiVersion, kind and metadata.name. Everybody who may read the application can read them, so Secrets are not
	// allowed.
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects"`
}

// Target is a cluster that an application goes to, or a group of clusters that get the same manifests.
type Target struct {
	// name is how stages, releases and messages refer to the target. It must be unique within the application.
	Name string `json:"name"`
	// cluster is the name of a cluster. Exactly one of cluster and clusterSelector is set.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// clusterSelector selects clusters by the labels of their Cluster objects. The selection is made when a release begins.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// follow says what happens when a cluster begins to match the clusterSelector, or no longer does. NextRelease installs the application there, or removes
	// it, with the next release. Immediately does so at once, by a release for this cluster alone. Defaults to NextRelease.
	// +optional
	Follow FollowPolicy `json:"follow,omitempty"`
	// path is the folder with the manifests for this target, relative to spec.source.git.path. Defaults to the one that an app.pipecd.yaml names for the target,
	// or to that folder.
	// +optional
	Path string `json:"path,omitempty"`
	// patches change the manifests for this target.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitempty"`
	// weight is the percentage of the replicas of each workload that this target gets. Targets without a weight share the rest evenly. If no target has a
	// weight, each cluster gets the full number of replicas.
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

// Patch changes manifests, as a patch in a kustomization.yaml does.
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

// Drift says what happens when objects are no longer as they were released.
type Drift struct {
	// ignore lists fields that may differ from what was released.
	// +optional
	// +listType=atomic
	Ignore []DriftIgnore `json:"ignore,omitempty"`
	// heal undoes such changes. If unset, they are only shown.
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
	// EventOutOfSync is sent when a target no longer has what was released, or the logical cluster does not.
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

// Notification sends events to an address.
type Notification struct {
	// name is how messages refer to the notification. It must be unique within the application.
	Name string `json:"name"`
	// type is Webhook or Slack. Defaults to Webhook.
	// +optional
	Type NotificationType `json:"type,omitempty"`
	// events are the events to send. If empty, all are sent.
	// +optional
	// +listType=set
	Events []NotificationEvent `json:"events,omitempty"`
	// secretRef names a Secret in the namespace of the application. Its key url holds the address to send to.
	SecretRef SecretReference `json:"secretRef"`
}
