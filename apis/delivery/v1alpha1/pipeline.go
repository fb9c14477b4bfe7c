package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pipeline lists the stages that the release of a new revision goes through.
type Pipeline struct {
	// stages run one after the other. When a stage fails, the release fails.
	// +listType=atomic
	Stages []Stage `json:"stages"`
}

// Stage is a step of a pipeline.
type Stage struct {
	// name says what the stage does: K8S_SYNC, K8S_PRIMARY_ROLLOUT, K8S_CANARY_ROLLOUT, K8S_CANARY_CLEAN, K8S_BASELINE_ROLLOUT,
	// K8S_BASELINE_CLEAN, K8S_TRAFFIC_ROUTING, WAIT, WAIT_APPROVAL, ANALYSIS or SCRIPT_RUN. Those that begin with K8S_ may also be written
	// with K8S_MULTI_.
	Name string `json:"name"`
	// id is how releases and commands refer to the stage. It must be unique within the pipeline. Defaults to "stage-" and the position of the stage,
	// counted from 0.
	// +optional
	ID string `json:"id,omitempty"`
	// desc is a description for people to read.
	// +optional
	Desc string `json:"desc,omitempty"`
	// with has the options of the stage. Which there are depends on its name.
	// +optional
	With *runtime.RawExtension `json:"with,omitempty"`
	// targets are the names of the targets that the stage changes. If empty, it changes all. Not allowed for stages that change nothing in clusters, such as
	// WAIT.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// waves split the clusters of the stage into groups. A wave begins when the one before it is done. If empty, all clusters change at once.
	// +optional
	// +listType=atomic
	Waves []Wave `json:"waves,omitempty"`
	// timeout is how long the stage may take. Defaults to 6h for WAIT_APPROVAL. Other stages without a timeout may take as long as their clusters make
	// progress.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// skipOn says for which changes the stage is skipped.
	// +optional
	SkipOn *SkipOn `json:"skipOn,omitempty"`
	// failure says how many clusters may fail before the stage fails. If unset, none may, and the stage waits for clusters that cannot be reached.
	// +optional
	Failure *FailurePolicy `json:"failure,omitempty"`
	// plugin is the name of the plugin that runs the stage, one of spec.plugins. If unset, a stage whose name is that of one which is built in is built in,
	// unless spec.pluginsOnly is set, and any other is run by the one of these plugins that offers it. The plan of a release names the plugin of each stage
	// that one runs.
	// +optional
	Plugin string `json:"plugin,omitempty"`
	// planned is what the plugin that runs the stage has answered when the release was planned. Only the plan of a release has it.
	// +optional
	Planned *PlannedStage `json:"planned,omitempty"`
}

// PlannedStage is what a plugin says of a stage that it is to run.
type PlannedStage struct {
	// index is the position of the stage in the pipeline, counted from 0. A stage that takes another one back has the index of that one. In a quick sync
	// plugins choose it.
	Index int32 `json:"index"`
	// rollback says that the stage runs only if the release is taken back.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
	// operation is what people may ask of the stage while it runs: Skip, Approve, or nothing.
	// +optional
	Operation PluginOperation `json:"operation,omitempty"`
	// approvers are the users who may do that. If empty, everybody may who has the right to it.
	// +optional
	// +listType=atomic
	Approvers []string `json:"approvers,omitempty"`
	// metadata is what the plugin has noted about the stage.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
}

// PluginOperation is what people may ask of a stage of a plugin.
// +enum
type PluginOperation string

const (
	// PluginSkip is a stage that may be left out.
	PluginSkip PluginOperation = "Skip"
	// PluginApprove is a stage that waits for somebody to agree.
	PluginApprove PluginOperation = "Approve"
)

// Wave is a group of clusters of a stage.
type Wave struct {
	// maxConcurrency is how many clusters of the wave change at the same time: a number, such as 3, or a percentage of the clusters of the stage, such as
	// "50%", rounded up. If unset, all do.
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// targets are the names of the targets whose clusters are in the wave. A wave without targets takes maxConcurrency of the clusters that no wave names,
	// and the last such wave takes all the rest.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
}

// SkipOn says for which changes a stage is skipped: those that match any of the fields.
type SkipOn struct {
	// commitMessagePrefixes match changes whose commit message begins with one of them.
	// +optional
	// +listType=set
	CommitMessagePrefixes []string `json:"commitMessagePrefixes,omitempty"`
	// paths are patterns of files, such as docs/**, relative to the root of the repository. They match a revision if no other files have changed since the
	// revision that ran before.
	// +optional
	// +listType=set
	Paths []string `json:"paths,omitempty"`
}

// UnreachableAction says what a stage does about a cluster that cannot be reached.
// +enum
type UnreachableAction string

const (
	// UnreachableWait waits until the cluster is back, up to the progress deadline.
	UnreachableWait UnreachableAction = "wait"
	// UnreachableSkip goes on without the cluster, which gets the revision when it is back.
	UnreachableSkip UnreachableAction = "skip"
	// UnreachableFail counts the cluster as failed.
	UnreachableFail UnreachableAction = "fail"
)

// FailurePolicy says how many clusters of a stage may fail. Clusters that have begun always finish.
type FailurePolicy struct {
	// maxFailures is how many clusters may fail without the stage failing. Defaults to 0.
	// +optional
	MaxFailures int32 `json:"maxFailures,omitempty"`
	// onUnreachable says what happens with a cluster that cannot be reached: wait, skip or fail. Defaults to wait.
	// +optional
	OnUnreachable UnreachableAction `json:"onUnreachable,omitempty"`
	// unreachableSeconds is how many seconds a cluster must not answer before it is skipped or counts as failed, and before later waves begin without it.
	// Defaults to 30.
	// +optional
	UnreachableSeconds *int32 `json:"unreachableSeconds,omitempty"`
}

// Planner says which changes go through the pipeline.
type Planner struct {
	// alwaysUsePipeline sends every change through the pipeline, even the first one.
	// +optional
	AlwaysUsePipeline bool `json:"alwaysUsePipeline,omitempty"`
	// commitMatcher decides by the commit message. It has no effect if alwaysUsePipeline is set.
	// +optional
	CommitMatcher *CommitMatcher `json:"commitMatcher,omitempty"`
}

// CommitMatcher decides by the commit message whether a change goes through the pipeline.
type CommitMatcher struct {
	// quickSync is a regular expression. A commit whose message matches goes to all targets at once.
	// +optional
	QuickSync string `json:"quickSync,omitempty"`
	// pipeline is a regular expression. A commit whose message matches goes through the pipeline. If both match, this one wins.
	// +optional
	Pipeline string `json:"pipeline,omitempty"`
}

// TriggerMode says who releases a new revision.
// +enum
type TriggerMode string

const (
	// TriggerAutomatic releases a new revision as soon as there is one.
	TriggerAutomatic TriggerMode = "Automatic"
	// TriggerManual leaves it to somebody.
	TriggerManual TriggerMode = "Manual"
)

// Concurrency says what happens to a new revision while an earlier one is being released.
// +enum
type Concurrency string

const (
	// ConcurrencyQueue lets the earlier release end first. Of several revisions that wait, only the newest is then released.
	ConcurrencyQueue Concurrency = "Queue"
	// ConcurrencySupersede cancels the earlier release and goes on from what it has reached.
	ConcurrencySupersede Concurrency = "Supersede"
)

// Trigger says when a new revision is released.
type Trigger struct {
	// mode is Automatic, which releases new revisions by itself, or Manual, which leaves that to "manifold app sync". Defaults to Automatic.
	// +optional
	Mode TriggerMode `json:"mode,omitempty"`
	// concurrency says what happens to a new revision while an older one is being released. Queue waits for the release to end. Supersede cancels it and
	// goes on from there. Defaults to Queue.
	// +optional
	Concurrency Concurrency `json:"concurrency,omitempty"`
	// paths are patterns of files, such as web/**, relative to the root of the repository. A revision is not released automatically if its commits change
	// none of them. Files below spec.source.git.path always count. If it is not known which files have changed, the revision is released.
	// +optional
	// +listType=set
	Paths []string `json:"paths,omitempty"`
	// ignores are patterns of files that do not count, even if they match paths.
	// +optional
	// +listType=set
	Ignores []string `json:"ignores,omitempty"`
}

// RollbackWhen says which failures take a release back.
// +enum
type RollbackWhen string

const (
	// RollbackAny takes it back when a stage fails, which is when more clusters have failed than the stage bears.
	RollbackAny RollbackWhen = "Any"
	// RollbackAll takes it back only when a stage fails that has succeeded in none of its clusters.
	RollbackAll RollbackWhen = "All"
	// RollbackNever leaves it to somebody.
	RollbackNever RollbackWhen = "Never"
)

// Rollback says when a failed release is rolled back. A rollback goes to all targets at once, and succeeds if it succeeds in at least one.
type Rollback struct {
	// when is Any, which rolls back as soon as a stage fails; All, which does so only if the stage has succeeded in none of its clusters, where those that are
	// skipped, or whose wave has not begun, have not; or Never. If unset, it is what autoRollback of an app.pipecd.yaml says, and Any without one.
	// +optional
	When RollbackWhen `json:"when,omitempty"`
}

// TrafficMethod is a way to share out requests over variants.
// +enum
type TrafficMethod string

const (
	// TrafficHTTPRoute sets weights of an HTTPRoute of Gateway API.
	TrafficHTTPRoute TrafficMethod = "HTTPRoute"
	// TrafficVirtualService sets weights of a VirtualService of Istio.
	TrafficVirtualService TrafficMethod = "VirtualService"
	// TrafficIngress gives each variant a path of an Ingress, or a weight by annotations of nginx.
	TrafficIngress TrafficMethod = "Ingress"
	// TrafficService switches the selector of the Service: one variant gets everything.
	TrafficService TrafficMethod = "Service"
	// TrafficReplicas has variants behind one Service, and shares out by the number of their pods. The primary keeps those that it has.
	TrafficReplicas TrafficMethod = "Replicas"
)

// Traffic says how requests are split between the variants: primary, canary and baseline.
type Traffic struct {
	// method is how requests are split. HTTPRoute and VirtualService set the weights of a route. Ingress sends all requests to one variant, and gives
	// canary and baseline paths of their own, such as /canary; with nginxCanary it sets a weight instead. Service changes the selector of the Service, so
	// that one variant gets all requests. Replicas puts the pods of all variants behind one Service, and gives canary and baseline as many pods as their
	// percentage needs; the primary then gets all requests, none, or at least 20 percent.
	Method TrafficMethod `json:"method"`
	// host is the host name by which users call the application. If name is not set, Manifold makes an HTTPRoute, VirtualService or Ingress for this host. It
	// has the name of the application, is deleted with it, and leads to the Service of the application. A VirtualService is made by the ServiceAccount in
	// spec.serviceAccountName. If there is an object of that name already that does not belong to the application, it stays as it is, and releases fail.
	// +optional
	Host string `json:"host,omitempty"`
	// name is the name of an existing HTTPRoute, VirtualService or Ingress, in the namespace of the application or among its manifests. Among the manifests, an
	// HTTPRoute or VirtualService goes to the clusters whose targets have it, unless its annotation manifold.dev/clusters says otherwise. The object itself is
	// not changed: the clusters get it with other weights or paths, and with all its other rules as they are. If set, none is made. With method VirtualService,
	// if neither name nor host is set, it is the only VirtualService among the manifests.
	// +optional
	Name string `json:"name,omitempty"`
	// port is the port of the Service that the route which Manifold makes leads to. It may be unset if the Service has only one.
	// +optional
	Port int32 `json:"port,omitempty"`
	// gateways are the Gateways of the HTTPRoute or VirtualService that Manifold makes. They are required for an HTTPRoute. A VirtualService without gateways
	// is for requests within the mesh.
	// +optional
	// +listType=atomic
	Gateways []GatewayReference `json:"gateways,omitempty"`
	// routes are the names of the rules, in the HTTPRoute or VirtualService that name refers to, whose weights are set. If empty, these are all rules that
	// lead to the Service of the application.
	// +optional
	// +listType=set
	Routes []string `json:"routes,omitempty"`
	// subsets uses the subsets of a DestinationRule, which you write, to tell variants apart. If unset, each variant has a Service of its own. Only for
	// VirtualService.
	// +optional
	Subsets bool `json:"subsets,omitempty"`
	// className is the IngressClass of the Ingress that Manifold makes.
	// +optional
	ClassName string `json:"className,omitempty"`
	// nginxCanary uses the canary annotations of ingress-nginx: a second Ingress, whose name ends in -canary, gets the percentage of the canary for the same
	// hosts and paths. A baseline gets no requests. If unset, canary and baseline have paths of their own, and percentages are not possible. Only for
	// Ingress.
	// +optional
	NginxCanary bool `json:"nginxCanary,omitempty"`
	// drainSeconds is how many seconds a variant that gets no more requests stays before it is removed. Defaults to 30.
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
}

// Makes reports whether a route is made.
func (t *Traffic) Makes() bool { return t.Name == "" && t.Host != "" && !t.Lost() }

// Finds reports whether the route is the one among the manifests, whatever its name is.
func (t *Traffic) Finds() bool {
	return t.Method == TrafficVirtualService && t.Name == "" && t.Host == ""
}

// Lost reports whether a route that is to be made would belong to no Gateway, so that no request ever came by it.
func (t *Traffic) Lost() bool {
	return t.Method == TrafficHTTPRoute && t.Name == "" && t.Host != "" && len(t.Gateways) == 0
}

// GatewayReference names a Gateway.
type GatewayReference struct {
	// namespace is the namespace of the Gateway. Defaults to that of the application.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the Gateway.
	Name string `json:"name"`
	// sectionName is the name of a listener of the Gateway. Only for HTTPRoute.
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}
