package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pipeline is the way of a new revision, stage by stage.
type Pipeline struct {
	// stages are gone through one after the other. When one fails, the release does.
	// +listType=atomic
	Stages []Stage `json:"stages"`
}

// Stage is a step of a pipeline.
type Stage struct {
	// name says what the stage does: K8S_SYNC, K8S_PRIMARY_ROLLOUT, K8S_CANARY_ROLLOUT, K8S_CANARY_CLEAN, K8S_BASELINE_ROLLOUT,
	// K8S_BASELINE_CLEAN, K8S_TRAFFIC_ROUTING, WAIT, WAIT_APPROVAL, ANALYSIS or SCRIPT_RUN. Those that begin with K8S_ may also be written
	// with K8S_MULTI_.
	Name string `json:"name"`
	// id names the stage in releases and commands. It must be unique in the pipeline. Unset, it is "stage-" and the stage's position,
	// from 0.
	// +optional
	ID string `json:"id,omitempty"`
	// desc is for people to read.
	// +optional
	Desc string `json:"desc,omitempty"`
	// with are the stage's own options.
	// +optional
	With *runtime.RawExtension `json:"with,omitempty"`
	// targets are the names of those of the application's targets that the stage is about. Empty stands for all. Stages that change nothing
	// in clusters have none.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// waves divide the clusters of the stage: a wave begins when the one before it is done. Empty stands for all at once.
	// +optional
	// +listType=atomic
	Waves []Wave `json:"waves,omitempty"`
	// timeout is how long the stage may take. Unset, WAIT_APPROVAL may take 6h, and others are bounded by the progress of their clusters.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// skipOn are changes for which the stage is skipped.
	// +optional
	SkipOn *SkipOn `json:"skipOn,omitempty"`
	// failure says how many clusters may fail. Unset, none may, and one that cannot be reached is waited for.
	// +optional
	Failure *FailurePolicy `json:"failure,omitempty"`
}

// Wave is a part of the clusters of a stage.
type Wave struct {
	// maxConcurrency is how many clusters of the wave change at the same time: a number, such as 3, or a part of the stage's clusters, such
	// as "50%", rounded up. Unset, all do.
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// targets are the names of the targets whose clusters are the wave. A wave that names none has as many of the clusters that no wave names
	// as change at the same time, and the last such wave has all that are left.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
}

// SkipOn are changes for which a stage is skipped: one that matches any field does.
type SkipOn struct {
	// commitMessagePrefixes are what the message of the commit may begin with.
	// +optional
	// +listType=set
	CommitMessagePrefixes []string `json:"commitMessagePrefixes,omitempty"`
	// paths are patterns of files, such as docs/**, from the root of the repository. A revision that differs from the one that ran before by no
	// other files matches.
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

// FailurePolicy says how many clusters of a stage may fail. The others are never cancelled half way.
type FailurePolicy struct {
	// maxFailures is how many clusters may fail before the stage does. Defaults to 0.
	// +optional
	MaxFailures int32 `json:"maxFailures,omitempty"`
	// onUnreachable is wait, skip or fail. Defaults to wait.
	// +optional
	OnUnreachable UnreachableAction `json:"onUnreachable,omitempty"`
	// unreachableSeconds is for how long a cluster must be silent before skip and fail act, and before later waves go on without it. Defaults to 30.
	// +optional
	UnreachableSeconds *int32 `json:"unreachableSeconds,omitempty"`
}

// Planner says which changes go through the pipeline.
type Planner struct {
	// alwaysUsePipeline sends every change through the pipeline, also the first one.
	// +optional
	AlwaysUsePipeline bool `json:"alwaysUsePipeline,omitempty"`
	// commitMatcher decides by the message of the commit, unless alwaysUsePipeline is set.
	// +optional
	CommitMatcher *CommitMatcher `json:"commitMatcher,omitempty"`
}

// CommitMatcher decides by the message of the commit.
type CommitMatcher struct {
	// quickSync is a regular expression. A commit that it matches goes to all targets at once.
	// +optional
	QuickSync string `json:"quickSync,omitempty"`
	// pipeline is a regular expression. A commit that it matches goes through the pipeline. When both match, this one wins.
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
	// mode is Automatic or Manual. Defaults to Automatic.
	// +optional
	Mode TriggerMode `json:"mode,omitempty"`
	// concurrency is Queue or Supersede. Defaults to Queue.
	// +optional
	Concurrency Concurrency `json:"concurrency,omitempty"`
	// paths are patterns of files, such as web/**, from the root of the repository. A revision by whose commit none of them changes is not
	// released by itself. Files of the source's own path always count, and so does a change that nobody can tell the files of.
	// +optional
	// +listType=set
	Paths []string `json:"paths,omitempty"`
	// ignores are patterns of files that do not count, even if paths names them.
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
	// RollbackAll takes it back only when all clusters of the stage have failed.
	RollbackAll RollbackWhen = "All"
	// RollbackNever leaves it to somebody.
	RollbackNever RollbackWhen = "Never"
)

// Rollback says when a release that fails is taken back. A rollback goes to all targets at once and has succeeded if it has in one.
type Rollback struct {
	// when is Any, All or Never. Defaults to Any.
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

// Traffic says how requests are shared out over variants.
type Traffic struct {
	// method is HTTPRoute, VirtualService, Ingress, Service or Replicas. HTTPRoute and VirtualService set weights of a route. Ingress has the paths of
	// the application lead to one variant, which gets everything, and gives each copy a path of its own below, such as /canary; with nginxCanary it
	// sets weights as well. Service has the Service in front lead to one variant, which gets everything. Replicas has it lead to all of them, and gives
	// copies as many pods as their shares take beside those of the primary, which gets everything, nothing, or at least 20 percent.
	Method TrafficMethod `json:"method"`
	// host is what the application is called from outside. Where name is not set, a route of the method's kind is made for it, which has the name of
	// the application, belongs to it, and leads to the Service in front. A VirtualService is made as the ServiceAccount that spec.serviceAccountName
	// names. An object of that name which somebody else has made is left as it is, and releases are refused.
	// +optional
	Host string `json:"host,omitempty"`
	// name is that of an HTTPRoute, VirtualService or Ingress in the namespace of the application or among its manifests. It stays as it is: clusters
	// hold it with other weights or paths, and what leads elsewhere is kept. No route is made then.
	// +optional
	Name string `json:"name,omitempty"`
	// port is that of the Service in front to which a route that is made leads. It may be left out where the Service has one alone.
	// +optional
	Port int32 `json:"port,omitempty"`
	// gateways are what an HTTPRoute that is made belongs to, without which none is made, or the gateways of a VirtualService that is made; none of
	// these stands for the mesh.
	// +optional
	// +listType=atomic
	Gateways []GatewayReference `json:"gateways,omitempty"`
	// routes are the names of the rules in the HTTPRoute or VirtualService that name names whose weights are changed. Empty stands for all that send
	// requests to the Service.
	// +optional
	// +listType=set
	Routes []string `json:"routes,omitempty"`
	// subsets tells variants apart by subsets of a DestinationRule, which you write. Unset, each variant has a Service. It is for VirtualService.
	// +optional
	Subsets bool `json:"subsets,omitempty"`
	// className is the class of an Ingress that is made.
	// +optional
	ClassName string `json:"className,omitempty"`
	// nginxCanary shares out by annotations that the controller of nginx reads: a second Ingress, whose name ends in that of the canary, gets the
	// canary's share of the requests for the same hosts and paths. A baseline gets none. Unset, each copy has a path of its own, and no percentages are
	// possible. It is for Ingress.
	// +optional
	NginxCanary bool `json:"nginxCanary,omitempty"`
	// drainSeconds is how long a variant that gets no more requests stays before it is removed. Defaults to 30.
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
}

// Makes reports whether a route is made.
func (t *Traffic) Makes() bool { return t.Name == "" && t.Host != "" && !t.Lost() }

// Lost reports whether a route that is to be made would belong to no Gateway, so that no request ever came by it.
func (t *Traffic) Lost() bool {
	return t.Method == TrafficHTTPRoute && t.Name == "" && t.Host != "" && len(t.Gateways) == 0
}

// GatewayReference names a Gateway.
type GatewayReference struct {
	// namespace is the namespace that the Gateway is in. Unset, it is that of the application.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the Gateway.
	Name string `json:"name"`
	// sectionName is the name of a listener. It is for HTTPRoute.
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}
