package delivery

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Release is one deployment of one revision, as it was asked for.
type Release struct {
	Name     string
	Revision Revision
	// Targets are those of the application, in its order. They are resolved once, when the release begins.
	Targets []Target
	// Others are the names of those targets of the application that the release is not about.
	Others []string
	// Whole says that the targets are all that the application has, and that they say where it runs: it leaves the clusters that are none any more.
	Whole bool
	// Nowhere says that the release goes to no cluster: plugins alone deliver it.
	Nowhere bool
	// Leaves are clusters that are none any more and that the release leaves though it is not whole.
	Leaves []string
	// Weights are the parts, in percent, of each workload's replicas that go to the targets. Without any, each cluster gets the whole number.
	Weights map[string]int32
	// Stages are run one after another.
	Stages []Stage
	// Current is what the application is to run when the release begins. Stable is what the last successful release has left, nil if there is none:
	// a rollback goes there.
	Current Set
	Stable  *Set
	// Otherwise says that what ran before was delivered in another way, such as by placement: a rollback changes it in all clusters, also in those where it stays.
	Otherwise bool
	Commit    Commit

	// MinReady is how long a target has to be ready before it counts, Progress how long it may go without any progress, and Drain how long a
	// variant stays after its traffic has gone.
	MinReady, Progress, Drain time.Duration
	// ByPods says that requests are shared out by the numbers of pods behind one Service, so that shares say how many pods copies have.
	ByPods   bool
	Rollback RollbackPolicy
}

// Target is where an application goes: a cluster by name, or all that a selector matches.
type Target struct {
	Name     string
	Cluster  string
	Selector *metav1.LabelSelector
}

// Commit is where a revision comes from, as far as stages ask for it.
type Commit struct {
	Message string
	// Paths are the files by which the revision differs from the one that ran before; none if that cannot be told.
	Paths []string
}

// RollbackPolicy says when a release is rolled back, and when that has worked.
type RollbackPolicy struct {
	// Disabled leaves a failed release as it is.
	Disabled bool
	// OnlyIfAllFail rolls back when a stage has failed and has succeeded in none of its targets. Otherwise a failed stage is enough.
	OnlyIfAllFail bool
	// NeedsAll has a rollback fail if it fails in any cluster. Otherwise it is enough that it succeeds in one.
	NeedsAll bool
}

// The built-in stages.
const (
	StageSync            = v1alpha1.StageSync
	StagePrimaryRollout  = v1alpha1.StagePrimaryRollout
	StageCanaryRollout   = v1alpha1.StageCanaryRollout
	StageCanaryClean     = v1alpha1.StageCanaryClean
	StageBaselineRollout = v1alpha1.StageBaselineRollout
	StageBaselineClean   = v1alpha1.StageBaselineClean
	StageTrafficRouting  = v1alpha1.StageTrafficRouting
	StageRollback        = v1alpha1.StageRollback
	StageWait            = v1alpha1.StageWait
	StageApproval        = v1alpha1.StageWaitApproval
	StageAnalysis        = v1alpha1.StageAnalysis
	StageScript          = v1alpha1.StageScriptRun
	StageScriptRollback  = "SCRIPT_RUN_ROLLBACK"
)

// UndoPrefix stands before the ID of a stage in the ID of the one that takes its script back.
const UndoPrefix = "rollback-"

// ScriptName names the run of a stage's script in an attempt, counted from 0.
func ScriptName(stage string, attempt int32) string { return fmt.Sprintf("%s-%d", stage, attempt) }

// MeasurementName names the run of the Job that makes a measurement of a metric, counted from 0, in an attempt at a stage. No script is called so.
func MeasurementName(stage string, attempt int32, metric string, number int32) string {
	return fmt.Sprintf("%s/%s/%d", ScriptName(stage, attempt), metric, number)
}

// CutMeasurement returns what the names of all measurements of one metric in one attempt begin with, and which of them this is. It reports
// whether it is the name of one.
func CutMeasurement(name string) (of string, number int, is bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.Atoi(name[i+1:])
	return name[:i], number, err == nil
}

// KeptJobs is how many of the Jobs that have measured a metric stay, to be looked at: the last ones.
const KeptJobs = 5

// Stage is one step of a release.
type Stage struct {
	// ID is unique in the release.
	ID   string
	Name string
	// Targets names those of the release's targets that the stage is about; none means all.
	Targets []string
	Waves   []Wave
	Failure Failure
	// Timeout bounds the whole stage; 0 does not.
	Timeout time.Duration
	SkipOn  SkipOn

	// What the kind of stage asks for; the others are nil.
	Copy     *CopyOptions
	Traffic  map[string]int32
	Wait     time.Duration
	Approval *Approval
	Analysis *Analysis
	// UndoesScript says that the stage has a script to run when the release is rolled back.
	UndoesScript bool

	// Plugin is the name of the plugin that runs the stage, empty if it is built in. Such a stage runs once for the whole application, whatever its name
	// is that of, and nothing of the above but the timeout and what it is skipped on is about it.
	Plugin string
	// With are its options as JSON, as they were written. Without any it is empty.
	With []byte
	// Index is the position of the stage in the pipeline, which the plugin knows it by.
	Index int32
	// RollsBack says that the stage runs only when the release is rolled back.
	RollsBack bool
}

// Variant is what the copies of a stage are like, whatever clusters have of them.
func (s Stage) Variant(name string) Variant {
	out := Variant{Suffix: name}
	if s.Copy == nil {
		return out
	}
	out.Service, out.Patches = s.Copy.Service, s.Copy.Patches
	if s.Copy.Suffix != "" {
		out.Suffix = s.Copy.Suffix
	}
	return out
}

// CopyOptions say what a canary or baseline is like.
type CopyOptions struct {
	Replicas   intstr.IntOrString // not given: of a baseline, the canary's
	PerCluster bool
	Suffix     string
	Service    bool
	Patches    []v1alpha1.VariantPatch
}

// Wave is a part of a stage's targets, which begins when those of the waves before are done.
type Wave struct {
	// MaxConcurrency is how many targets may be under way at once: a number, or a percentage of the stage's targets, rounded up. None means all.
	MaxConcurrency *intstr.IntOrString
	// Targets names those in the wave. If there are none, a wave has as many of the rest as may be under way at once, and the last one has all.
	Targets []string
}

// Failure says what failed and silent targets mean for a stage.
type Failure struct {
	// MaxFailures is how many targets may fail without the stage failing.
	MaxFailures int32
	// OnUnreachable says what happens to a target whose cluster does not answer: Wait, Skip or Fail.
	OnUnreachable string
	// After is how long a cluster has to be silent for that.
	After time.Duration
}

// What happens to a target whose cluster does not answer.
const (
	Wait = string(v1alpha1.UnreachableWait)
	Skip = string(v1alpha1.UnreachableSkip)
	Fail = string(v1alpha1.UnreachableFail)
)

// SkipOn says for what commits a stage is left out.
type SkipOn struct {
	// Prefixes are those of commit messages.
	Prefixes []string
	// Paths are patterns. The stage is left out if files have changed since what ran before, and all of them match one.
	Paths []string
}

// Approval says who has to agree.
type Approval struct {
	// Approvers are users, and groups as in "group:sre". If there are none, whoever may approve by the rules of the logical cluster counts.
	Approvers []string
	// Minimum is how many different people have to agree; 0 means 1.
	Minimum int32
	// Expiry is how long an approval counts; 0 means for ever.
	Expiry time.Duration
	// Comment says that an approval without a comment does not count.
	Comment bool
}

// Analysis says what is measured, and for how long.
type Analysis struct {
	Duration time.Duration
	Metrics  []Metric
}

// How a metric is judged.
const (
	Threshold      = v1alpha1.AnalysisThreshold
	Previous       = v1alpha1.AnalysisPrevious
	CanaryBaseline = v1alpha1.AnalysisCanaryBaseline
	CanaryPrimary  = v1alpha1.AnalysisCanaryPrimary
)

// The deviations that a comparison objects to.
const (
	Either = v1alpha1.DeviationEither
	High   = v1alpha1.DeviationHigh
	Low    = v1alpha1.DeviationLow
)

// Metric is one thing that is measured again and again.
type Metric struct {
	Name     string
	Strategy string
	// Interval is 0 for a Job that runs once.
	Interval time.Duration
	// Job is not nil where each measurement is a Job.
	Job *JobOptions
	// FailureLimit is how many measurements may be bad.
	FailureLimit int32
	SkipOnNoData bool
	// Min and Max bound every value, for THRESHOLD.
	Min, Max *float64
	// Deviation says in which direction the values may not differ from those that they are compared with.
	Deviation string
}

// JobOptions say when Jobs measure.
type JobOptions struct {
	// Delay is how long after the stage the first one begins, and Timeout how long each may take; 0 does not bound it.
	Delay, Timeout time.Duration
}
