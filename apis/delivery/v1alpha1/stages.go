package v1alpha1

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Names of stages. Those that change clusters may also be written with K8S_MULTI_ in place of K8S_.
const (
	// StageSync brings a revision to all of its targets and drops variants.
	StageSync = "K8S_SYNC"
	// StagePrimaryRollout brings a revision to the application itself.
	StagePrimaryRollout = "K8S_PRIMARY_ROLLOUT"
	// StageCanaryRollout adds a copy of the revision that is released.
	StageCanaryRollout = "K8S_CANARY_ROLLOUT"
	// StageCanaryClean drops it.
	StageCanaryClean = "K8S_CANARY_CLEAN"
	// StageBaselineRollout adds a copy of the revision that ran before.
	StageBaselineRollout = "K8S_BASELINE_ROLLOUT"
	// StageBaselineClean drops it.
	StageBaselineClean = "K8S_BASELINE_CLEAN"
	// StageTrafficRouting shares out requests over variants.
	StageTrafficRouting = "K8S_TRAFFIC_ROUTING"
	// StageWait waits for a time.
	StageWait = "WAIT"
	// StageWaitApproval waits until people agree.
	StageWaitApproval = "WAIT_APPROVAL"
	// StageAnalysis measures for a time.
	StageAnalysis = "ANALYSIS"
	// StageScriptRun runs a script in a Job of the logical cluster.
	StageScriptRun = "SCRIPT_RUN"
	// StageRollback takes a release back. Releases have it of their own accord; pipelines may not name it.
	StageRollback = "ROLLBACK"
)

// RollbackStageID is the id of the stage ROLLBACK.
const RollbackStageID = "rollback"

const (
	clusterStagePrefix = "K8S_"
	multiStagePrefix   = "K8S_MULTI_"
)

// CanonicalStageName returns the name of a stage without the MULTI that those may have which change clusters.
func CanonicalStageName(name string) string {
	if rest, multi := strings.CutPrefix(name, multiStagePrefix); multi {
		return clusterStagePrefix + rest
	}
	return name
}

// ChangesClusters reports whether stages of this name change something in clusters, and so have targets. Others run once for the whole
// application.
func ChangesClusters(name string) bool {
	return strings.HasPrefix(name, clusterStagePrefix)
}

// IsBuiltIn reports whether there is a stage of this name that takes no plugin.
func IsBuiltIn(name string) bool {
	_, known := stageOptions[CanonicalStageName(name)]
	return known
}

// RunByPlugin reports whether a plugin runs a stage of the application: one that it names, or one that offers stages which are not built in. Of an
// application that plugins alone deliver, they run all.
func (s *ApplicationSpec) RunByPlugin(stage *Stage) bool {
	return s.PluginsOnly || stage.Plugin != "" || len(s.Plugins) > 0 && !IsBuiltIn(stage.Name)
}

// StageID returns the id of the stage at a position, from 0.
func StageID(stage *Stage, position int) string {
	if stage.ID != "" {
		return stage.ID
	}
	return "stage-" + strconv.Itoa(position)
}

// Stage returns the stage with an id, and its position, nil if the plan has none or there is no plan.
func (p *ReleasePlan) Stage(id string) (*Stage, int) {
	if p == nil {
		return nil, 0
	}
	for i := range p.Stages {
		if stage := &p.Stages[i]; StageID(stage, i) == id {
			return stage, i
		}
	}
	return nil, 0
}

// ByPlugin returns the stage with an id if a plugin runs it, otherwise nil.
func (p *ReleasePlan) ByPlugin(id string) *Stage {
	if stage, _ := p.Stage(id); stage != nil && stage.Plugin != "" {
		return stage
	}
	return nil
}

// WaitsForApproval reports whether a stage of a plan waits for people to agree while it runs.
func (p *ReleasePlan) WaitsForApproval(of *StageStatus) bool {
	if stage := p.ByPlugin(of.ID); stage != nil {
		return stage.Planned != nil && stage.Planned.Operation == PluginApprove
	}
	return of.Name == StageWaitApproval
}

// SyncOptions are the options of K8S_SYNC.
type SyncOptions struct {
	// addVariantLabelToSelector adds the variant label to the selectors of the workloads that variants have copies of, and to the labels of their pods. It
	// becomes part of the revision, so it applies to all targets, however the revision is released. Selectors of existing workloads cannot be changed: a
	// release that would change one fails before anything is applied.
	// +optional
	AddVariantLabelToSelector bool `json:"addVariantLabelToSelector,omitempty"`
	// prune deletes objects that the revision does not have, whatever spec.prune of the application says.
	// +optional
	Prune bool `json:"prune,omitempty"`
}

// PrimaryRolloutOptions are the options of K8S_PRIMARY_ROLLOUT.
type PrimaryRolloutOptions struct {
	// suffix is appended to the name of the primary's own Service, after a hyphen. Defaults to primary.
	// +optional
	Suffix string `json:"suffix,omitempty"`
	// createService makes a copy of the application's Service that leads to the pods of the primary only, in the targets of the stage. It selects them by
	// the variant label, which they then have. It becomes part of the revision, so it comes and goes with it, however the revision is released.
	// +optional
	CreateService bool `json:"createService,omitempty"`
	// addVariantLabelToSelector adds the variant label to the selectors of workloads, as that of K8S_SYNC does.
	// +optional
	AddVariantLabelToSelector bool `json:"addVariantLabelToSelector,omitempty"`
	// prune deletes objects that the revision does not have, whatever spec.prune of the application says.
	// +optional
	Prune bool `json:"prune,omitempty"`
}

// CanaryRolloutOptions are the options of K8S_CANARY_ROLLOUT.
type CanaryRolloutOptions struct {
	// replicas is how many replicas of each workload the canary has in all clusters of the stage together: a number, such as 3, or a percentage of the
	// replicas of the application, such as "10%", rounded up. Defaults to 1.
	// +optional
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`
	// perCluster makes replicas the number, or percentage, in each cluster.
	// +optional
	PerCluster bool `json:"perCluster,omitempty"`
	// suffix is appended to the names of the canary's objects, after a hyphen. Defaults to canary.
	// +optional
	Suffix string `json:"suffix,omitempty"`
	// createService gives the canary a Service of its own.
	// +optional
	CreateService bool `json:"createService,omitempty"`
	// patches change the manifests of the canary. If one cannot be applied, the release does not begin.
	// +optional
	// +listType=atomic
	Patches []VariantPatch `json:"patches,omitempty"`
}

// BaselineRolloutOptions are the options of K8S_BASELINE_ROLLOUT.
type BaselineRolloutOptions struct {
	// replicas is how many replicas the baseline has, in the same form as for a canary. Defaults to the number of the canary.
	// +optional
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`
	// perCluster makes replicas the number, or percentage, in each cluster.
	// +optional
	PerCluster bool `json:"perCluster,omitempty"`
	// suffix is appended to the names of the baseline's objects, after a hyphen. Defaults to baseline.
	// +optional
	Suffix string `json:"suffix,omitempty"`
	// createService gives the baseline a Service of its own.
	// +optional
	CreateService bool `json:"createService,omitempty"`
}

// CleanOptions are the options of K8S_CANARY_CLEAN and K8S_BASELINE_CLEAN, which have none.
type CleanOptions struct{}

// VariantPatch changes the objects of a variant.
type VariantPatch struct {
	// target selects the objects.
	Target VariantPatchTarget `json:"target"`
	// yamlOps are the changes, one after the other.
	// +listType=atomic
	YAMLOps []VariantPatchOp `json:"yamlOps"`
}

// VariantPatchTarget names an object that a variant has a copy of, by its name among the manifests.
type VariantPatchTarget struct {
	// kind is the object's kind.
	Kind string `json:"kind"`
	// name is the object's name.
	Name string `json:"name"`
	// documentRoot is a field that contains YAML or JSON, such as $.data.config\.yaml. If set, the changes apply to that document, which loses its
	// comments.
	// +optional
	DocumentRoot string `json:"documentRoot,omitempty"`
}

// VariantPatchOp is a change of one value.
type VariantPatchOp struct {
	// op is yaml-replace, which is also the default.
	// +optional
	Op string `json:"op,omitempty"`
	// path is the field, such as $.spec.template.spec.containers[0].image. It must exist. If a name contains a dot, put a backslash before it, or quotes
	// around the name.
	Path string `json:"path"`
	// value is the new value, as YAML.
	Value string `json:"value"`
}

// PatchReplace is the op that replaces a value.
const PatchReplace = "yaml-replace"

// TrafficRoutingOptions are the options of K8S_TRAFFIC_ROUTING. Set either all, or percentages that add up to 100. If primary is not set, it gets what the
// others leave.
type TrafficRoutingOptions struct {
	// all is the name of the variant that gets all requests: primary, canary or baseline.
	// +optional
	All string `json:"all,omitempty"`
	// primary is the percentage of the requests that the primary gets.
	// +optional
	Primary *Percentage `json:"primary,omitempty"`
	// canary is the percentage of the requests that the canary gets.
	// +optional
	Canary *Percentage `json:"canary,omitempty"`
	// baseline is the percentage of the requests that the baseline gets.
	// +optional
	Baseline *Percentage `json:"baseline,omitempty"`
}

// WaitOptions are the options of WAIT.
type WaitOptions struct {
	// duration is how long the stage waits.
	Duration metav1.Duration `json:"duration"`
}

// What a name among approvers begins with, to tell groups from users. A name that begins with neither is that of a user.
const (
	ApproverUser  = "user:"
	ApproverGroup = "group:"
)

// IsApprover reports whether one of a stage's approvers is this user, or a group that they are in.
func IsApprover(approver, user string, groups []string) bool {
	if group, isGroup := strings.CutPrefix(approver, ApproverGroup); isGroup {
		return slices.Contains(groups, group)
	}
	return strings.TrimPrefix(approver, ApproverUser) == user
}

// WaitApprovalOptions are the options of WAIT_APPROVAL.
type WaitApprovalOptions struct {
	// approvers are the users, as user:NAME, and groups, as group:NAME, whose approval counts. They also need the right to create releases/approve. If
	// empty, everybody who has that right can approve.
	// +optional
	// +listType=set
	Approvers []string `json:"approvers,omitempty"`
	// minApproverNum is how many different users must approve. Defaults to 1.
	// +optional
	MinApproverNum int32 `json:"minApproverNum,omitempty"`
	// expiry is how long an approval is valid. If unset, it is valid as long as the stage waits.
	// +optional
	Expiry *metav1.Duration `json:"expiry,omitempty"`
	// requireComment rejects approvals without a comment.
	// +optional
	RequireComment bool `json:"requireComment,omitempty"`
}

// Strategies of metrics in ANALYSIS.
const (
	// AnalysisThreshold compares with numbers.
	AnalysisThreshold = "THRESHOLD"
	// AnalysisPrevious compares with what was measured in the release before.
	AnalysisPrevious = "PREVIOUS"
	// AnalysisCanaryBaseline compares the canary with the baseline.
	AnalysisCanaryBaseline = "CANARY_BASELINE"
	// AnalysisCanaryPrimary compares the canary with the primary.
	AnalysisCanaryPrimary = "CANARY_PRIMARY"
)

// Directions of a deviation in ANALYSIS that make a metric fail.
const (
	DeviationEither = "EITHER"
	DeviationHigh   = "HIGH"
	DeviationLow    = "LOW"
)

// AnalysisOptions are the options of ANALYSIS.
type AnalysisOptions struct {
	// duration is how long the stage measures. It may be unset if there are only Jobs that run once: the stage then ends with the last of them.
	// +optional
	Duration metav1.Duration `json:"duration,omitempty"`
	// restartThreshold is how often containers of the new version may restart.
	// +optional
	RestartThreshold int32 `json:"restartThreshold,omitempty"`
	// metrics are queries to Prometheus servers.
	// +optional
	// +listType=atomic
	Metrics []AnalysisMetric `json:"metrics,omitempty"`
	// https are HTTP requests.
	// +optional
	// +listType=atomic
	HTTPS []AnalysisHTTP `json:"https,omitempty"`
	// jobs are Jobs that test the application.
	// +optional
	// +listType=atomic
	Jobs []AnalysisJob `json:"jobs,omitempty"`
}

// AnalysisMetric is a query that is repeated.
type AnalysisMetric struct {
	// strategy is THRESHOLD, PREVIOUS, CANARY_BASELINE or CANARY_PRIMARY. Defaults to THRESHOLD.
	// +optional
	Strategy string `json:"strategy,omitempty"`
	// provider is the address of a Prometheus server. In app.pipecd.yaml it may be one of the names in spec.source.git.pipecd.analysisProviders.
	Provider string `json:"provider"`
	// query is in PromQL. It may name the variant and the values of its arguments: {{ .Variant.Name }}, {{ .VariantCustomArgs.key }}, and the
	// application: {{ .App.Name }}, {{ .App.Env }}, which is its label env, {{ .K8s.Namespace }}.
	Query string `json:"query"`
	// expected are the bounds for THRESHOLD.
	// +optional
	Expected *AnalysisExpected `json:"expected,omitempty"`
	// interval is the time between two queries.
	Interval metav1.Duration `json:"interval"`
	// failureLimit is how many queries may fail without the stage failing. Defaults to 0.
	// +optional
	FailureLimit int32 `json:"failureLimit,omitempty"`
	// skipOnNoData makes a query that returns no data count as good.
	// +optional
	SkipOnNoData bool `json:"skipOnNoData,omitempty"`
	// deviation says which difference between the two compared values is bad: EITHER, HIGH or LOW. Defaults to EITHER.
	// +optional
	Deviation string `json:"deviation,omitempty"`
	// baselineArgs are the arguments of the query for the baseline.
	// +optional
	BaselineArgs map[string]string `json:"baselineArgs,omitempty"`
	// canaryArgs are those for the canary.
	// +optional
	CanaryArgs map[string]string `json:"canaryArgs,omitempty"`
	// primaryArgs are those for the primary.
	// +optional
	PrimaryArgs map[string]string `json:"primaryArgs,omitempty"`
	// timeout is how long a query may take, up to 1m. Defaults to 30s.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// secretRef names a Secret in the namespace of the application with the credentials: username and password, or token, and ca.crt for the
	// certificate authority of the server.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// AnalysisExpected are bounds, of which at least one is set.
type AnalysisExpected struct {
	// min is the lowest value that is good.
	// +optional
	Min *float64 `json:"min,omitempty"`
	// max is the highest value that is good.
	// +optional
	Max *float64 `json:"max,omitempty"`
}

// AnalysisHTTP is an HTTP request that is repeated.
type AnalysisHTTP struct {
	// url is the address.
	URL string `json:"url"`
	// method is the HTTP method. Defaults to GET.
	// +optional
	Method string `json:"method,omitempty"`
	// headers are sent along.
	// +optional
	// +listType=atomic
	Headers []AnalysisHeader `json:"headers,omitempty"`
	// expectedCode is the expected status code.
	ExpectedCode int32 `json:"expectedCode"`
	// expectedResponse is the expected body. If unset, any body is good.
	// +optional
	ExpectedResponse string `json:"expectedResponse,omitempty"`
	// interval is the time between two requests.
	Interval metav1.Duration `json:"interval"`
	// failureLimit is how many requests may fail without the stage failing. Defaults to 0.
	// +optional
	FailureLimit int32 `json:"failureLimit,omitempty"`
	// timeout is how long a request may take, up to 1m. Defaults to 30s.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// secretRef names a Secret in the namespace of the application with the credentials, as that of a metric.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// AnalysisHeader is a header of a request.
type AnalysisHeader struct {
	// key is the header's name.
	Key string `json:"key"`
	// value is its value.
	Value string `json:"value"`
}

// AnalysisJobTimeout is how long a Job of ANALYSIS may take that does not say.
const AnalysisJobTimeout = time.Hour

// AnalysisJob is a measurement by a Job, which is good if the Job completes and bad if it fails. It runs in the logical cluster, as the one of a
// script does and with the same variables in its environment.
type AnalysisJob struct {
	// image is the image that the Job's container runs.
	Image string `json:"image"`
	// command is the container's entrypoint. Defaults to the image's. As in any container, $(NAME) stands for a variable of its environment.
	// +optional
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// args are the arguments of the entrypoint. Defaults to the image's.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`
	// run is a script for /bin/sh, in place of command and args.
	// +optional
	Run string `json:"run,omitempty"`
	// env are variables of its environment.
	// +optional
	Env map[string]string `json:"env,omitempty"`
	// serviceAccountName is the ServiceAccount of the Job's pod. Defaults to the namespace's own.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// backoffLimit is how often a pod that has failed is replaced before its Job has failed. Defaults to 0.
	// +optional
	BackoffLimit int32 `json:"backoffLimit,omitempty"`
	// initialDelay is how long after the stage has begun the first Job runs. Defaults to at once.
	// +optional
	InitialDelay *metav1.Duration `json:"initialDelay,omitempty"`
	// interval is how long after a Job has ended the next one runs. Unset, there is one.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// failureLimit is how many failed Jobs the stage bears. Defaults to 0.
	// +optional
	FailureLimit int32 `json:"failureLimit,omitempty"`
	// timeout is how long a Job may take before it has failed. Defaults to 1h.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// ScriptRunOptions are those of SCRIPT_RUN.
type ScriptRunOptions struct {
	// image is the image that the script runs in.
	Image string `json:"image"`
	// run is the script, for /bin/sh.
	Run string `json:"run"`
	// env are variables of its environment.
	// +optional
	Env map[string]string `json:"env,omitempty"`
	// onRollback is the script that takes back what this one has done. When a release is rolled back, the scripts of its stages run one after the other, from
	// the first stage to the last, once the clusters have been rolled back.
	// +optional
	OnRollback string `json:"onRollback,omitempty"`
	// serviceAccountName is the ServiceAccount of the Job's pod. Defaults to the namespace's own.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}
