// Package weave has the kinds of Weave GitOps' Pipelines as values: what an app is to pass through on its way, what runs in each of its environments, and
// what was promoted from one to the next.
//
// Everything here is a function of values, as in the other rooms of delivery. Both groups have one type: what the older one says by a label the newer one
// says by spec.appRef.
package weave

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The groups that pipelines are served under, in one version.
const (
	Group      = "pipelines.weave.works"
	OlderGroup = "pipelines.wego.weave.works"
	Version    = "v1alpha1"

	// Kind and Resource are the same in both groups.
	Kind     = "Pipeline"
	Resource = "pipelines"
)

// GroupVersions are those that pipelines are served under.
var GroupVersions = []schema.GroupVersion{{Group: Group, Version: Version}, {Group: OlderGroup, Version: Version}}

// Labels by which a workload is part of the pipeline of that name, in the two spellings of the document.
const (
	PipelineLabel      = Group + "/pipeline"
	OlderPipelineLabel = OlderGroup + "/pipeline"
)

// Kinds that the clusterRef of a target may name. A GitopsCluster is a view of the Cluster of its name.
const (
	KindGitopsCluster = "GitopsCluster"
	KindCluster       = "Cluster"
)

// GitopsClusters is the resource of the views of Clusters.
var GitopsClusters = schema.GroupVersionResource{Group: "gitops.weave.works", Version: "v1alpha1", Resource: "gitopsclusters"}

// Pipeline is an app's way through its environments.
type Pipeline struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status"`
}

// Spec says which app it is, and what its environments are, in order.
type Spec struct {
	// AppRef names the app in each target; nil in the older group, where workloads carry a label.
	AppRef       *AppReference `json:"appRef,omitempty"`
	Environments []Environment `json:"environments"`
	Promotion    *Promotion    `json:"promotion,omitempty"`
}

// AppReference names an object in the namespace of each target.
type AppReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Environment is one or more targets that have the same version when it has passed.
type Environment struct {
	Name    string   `json:"name"`
	Targets []Target `json:"targets"`
	// Promotion says how this environment gets a version, where that differs from what the pipeline says.
	Promotion *Promotion `json:"promotion,omitempty"`
}

// Target is a namespace of a cluster, or of the logical cluster itself if no cluster is named.
type Target struct {
	Namespace  string            `json:"namespace"`
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
}

// ClusterReference names a Cluster, or a GitopsCluster.
type ClusterReference struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"`
}

// Promotion says how a version reaches an environment.
type Promotion struct {
	// Manual says that a person asks for it.
	Manual   bool     `json:"manual,omitempty"`
	Strategy Strategy `json:"strategy"`
	// Supersede says that a newer version is promoted although an older one is still on its way. Without it the newer one waits.
	Supersede bool `json:"supersede,omitempty"`
}

// Strategy is exactly one way of promotion.
type Strategy struct {
	PullRequest  *PullRequest  `json:"pull-request,omitempty"`
	Notification *Notification `json:"notification,omitempty"`
	Direct       *Direct       `json:"direct,omitempty"`
	// SecretRef names the Secret of the pipeline's namespace that signs the calls of its webhooks, under the key "hmac-key".
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// Types of forges, as pull requests name them.
const (
	ForgeGitHub          = "github"
	ForgeGitLab          = "gitlab"
	ForgeBitbucketServer = "bitbucket-server"
	ForgeAzureDevOps     = "azure-devops"
	ForgeGitea           = "gitea"
)

// PullRequest promotes by a change of a repository that people merge.
type PullRequest struct {
	Type       string `json:"type"`
	URL        string `json:"url"`
	BaseBranch string `json:"baseBranch"`
	// Path is the folder of the repository that manifests are looked for in, all of it if it is empty.
	Path string `json:"path,omitempty"`
	// SecretRef names the Secret of the pipeline's namespace with the credential: "token" for the forge's API, and what git needs, "username" and
	// "password" or nothing else over HTTPS, "identity" and "known_hosts" over SSH.
	SecretRef SecretReference `json:"secretRef"`
}

// Notification promotes by an event, which others act on.
type Notification struct{}

// Direct promotes by writing what the targets of the environment are to run.
type Direct struct {
	// ServiceAccountName names the ServiceAccount of the pipeline's namespace by whose rights that is written.
	ServiceAccountName string `json:"serviceAccountName"`
}

// SecretReference names a Secret of the pipeline's namespace.
type SecretReference struct {
	Name string `json:"name"`
}

// Condition types of a Pipeline.
const (
	// ConditionReady is True when all targets can be read, and False with the first that cannot.
	ConditionReady = "Ready"
	// ConditionPromoting tells where the newest version is, and what it waits for: True while it is on its way.
	ConditionPromoting = "Promoting"
)

// Status is what runs where, and how far the newest version is. Two controllers write it, each what is its own: the one that looks writes targets, what is
// denied, and ConditionReady, the one that promotes all the rest; what persons have asked for is written as they ask.
type Status struct {
	ObservedGeneration int64                         `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition            `json:"conditions,omitempty"`
	Environments       map[string]*EnvironmentStatus `json:"environments,omitempty"`
	// Paused is who has paused it, nil if nobody has.
	Paused *Pause `json:"paused,omitempty"`
}

// Pause is a hold by a person.
type Pause struct {
	By      string      `json:"by"`
	At      metav1.Time `json:"at"`
	Message string      `json:"message,omitempty"`
}

// EnvironmentStatus is what runs in an environment.
type EnvironmentStatus struct {
	// WaitingStatus is the version that waits for a person to promote it to here.
	WaitingStatus *WaitingStatus `json:"waitingStatus,omitempty"`
	// Promotion is the last one to here.
	Promotion *PromotionStatus `json:"promotion,omitempty"`
	// Asked is what a person has asked for last.
	Asked   *Ask           `json:"asked,omitempty"`
	Targets []TargetStatus `json:"targets,omitempty"`
	// Denied says why nothing is promoted to here, and WebhookDenied why no call is believed that is about promotions to here: whoever has the pipeline use a
	// Secret or a ServiceAccount for that has lost the right to it.
	Denied        string `json:"denied,omitempty"`
	WebhookDenied string `json:"webhookDenied,omitempty"`
}

// WaitingStatus names a version.
type WaitingStatus struct {
	Revision string `json:"revision"`
}

// Ask is what a person has asked for: that a version be promoted to an environment.
type Ask struct {
	Revision string      `json:"revision"`
	By       string      `json:"by"`
	At       metav1.Time `json:"at"`
	Message  string      `json:"message,omitempty"`
}

// PromotionPhase says how far a promotion is.
type PromotionPhase string

// Phases of a promotion.
const (
	// PromotionWaiting waits for a person.
	PromotionWaiting PromotionPhase = "Waiting"
	// PromotionBegun is about to be carried out. It is told before, so that nobody mistakes what comes of it.
	PromotionBegun PromotionPhase = "Begun"
	// PromotionStarted is done on our side: a pull request is open, an event is written, or the targets are told.
	PromotionStarted PromotionPhase = "Started"
	// PromotionVerified says that all targets run the version and are ready.
	PromotionVerified PromotionPhase = "Verified"
	// PromotionFailed is tried again.
	PromotionFailed PromotionPhase = "Failed"
	// PromotionRevoked was given up, since the version failed in an environment before.
	PromotionRevoked PromotionPhase = "Revoked"
)

// PromotionStatus is what came of the promotion of a version to an environment.
type PromotionStatus struct {
	Revision string         `json:"revision"`
	Strategy string         `json:"strategy"`
	Phase    PromotionPhase `json:"phase"`
	// URL leads to the pull request.
	URL     string `json:"url,omitempty"`
	Message string `json:"message,omitempty"`
	By      string `json:"by,omitempty"`
	// At is when it was begun, however often it is tried.
	At       metav1.Time `json:"at"`
	Attempts int32       `json:"attempts,omitempty"`
	// Refused says that it has failed by what will not pass by itself: it is tried again once the pipeline, the Secret or the repository has changed.
	Refused bool `json:"refused,omitempty"`
	// Held says that a person has asked for it in the place of another version, which is not promoted to here until a person asks for that.
	Held bool `json:"held,omitempty"`
}

// TargetStatus is what runs in a target. Kind and Name are those of the cluster, as the document shows them, and ClusterRef the same as later versions
// of Weave GitOps show it; all are missing for the logical cluster.
type TargetStatus struct {
	Kind       string            `json:"kind,omitempty"`
	Name       string            `json:"name,omitempty"`
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	Namespace  string            `json:"namespace"`
	// Ready says that all workloads are.
	Ready bool `json:"ready"`
	// Error says why the target cannot be read, or what of it cannot. Workloads are then what was seen last.
	Error     string           `json:"error,omitempty"`
	Workloads []WorkloadStatus `json:"workloads,omitempty"`
	// Denied says that whoever has named the target may not see any more what is there, so that nothing of it is shown, and nothing promoted to it.
	Denied bool `json:"denied,omitempty"`
	// MoreWorkloads is how many there are beyond those that are listed.
	MoreWorkloads int32 `json:"moreWorkloads,omitempty"`
}

// WorkloadStatus is what a target runs of the app.
type WorkloadStatus struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Version is the chart's version, the revision that was applied, or all image tags, separated by commas.
	Version string `json:"version"`
	// LastAppliedRevision is what the target has taken over, which is Version unless it is still on its way there.
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	Ready               bool   `json:"ready"`
	// Failed says that it is not ready since it failed, and not since it is on its way.
	Failed     bool               `json:"failed,omitempty"`
	Message    string             `json:"message,omitempty"`
	Images     []string           `json:"images,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
