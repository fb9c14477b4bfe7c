// Package read makes values of delivery of what the objects of the API say.
//
// What an object asks for and delivery does not do is named by its path, so that whoever shows the object can say so. It is never ignored.
package read

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
)

// approvalTimeout is how long people are waited for, where a stage does not say.
const approvalTimeout = 6 * time.Hour

// restartInterval is how often restarts of containers are counted.
const restartInterval = 30 * time.Second

// Targets are the targets of an application.
func Targets(targets []v1alpha1.Target) []delivery.Target {
	var out []delivery.Target
	for _, target := range targets {
		out = append(out, delivery.Target{Name: target.Name, Cluster: target.Cluster, Selector: target.ClusterSelector})
	}
	return out
}

// Runs are the clusters that an application runs in by what a status says of its variants, each with the target that it is of.
func Runs(variants []v1alpha1.Variant) map[string]string {
	out := map[string]string{}
	for _, variant := range variants {
		for _, cluster := range variant.Clusters {
			if _, known := out[cluster.Cluster]; !known || variant.Name == v1alpha1.VariantPrimary {
				out[cluster.Cluster] = cluster.Target
			}
		}
	}
	return out
}

// Rollback is when a release is rolled back.
func Rollback(rollback v1alpha1.Rollback) delivery.RollbackPolicy {
	return delivery.RollbackPolicy{Disabled: rollback.When == v1alpha1.RollbackNever, OnlyIfAllFail: rollback.When == v1alpha1.RollbackAll}
}

// Copies are what copies of an application are made of, and how.
func Copies(spec v1alpha1.ApplicationSpec) copies.Options {
	label := spec.VariantLabel
	out := copies.Options{Label: label.Key, Values: map[string]string{
		delivery.Primary: label.PrimaryValue, delivery.Canary: label.CanaryValue, delivery.Baseline: label.BaselineValue,
	}}
	if spec.Service != nil {
		out.Service = spec.Service.Name
	}
	for _, workload := range spec.Workloads {
		out.Workloads = append(out.Workloads, workload.Kind+"/"+workload.Name)
	}
	out.Labelled = spec.Traffic != nil // a Service can lead to the primary alone only by the label
	return out
}

// Stages are those of a pipeline. What of them is not done is told, by its path.
func Stages(stages []v1alpha1.Stage, path *field.Path) (out []delivery.Stage, undone []string, errs field.ErrorList) {
	for i := range stages {
		stage, with := &stages[i], path.Index(i).Child("with")
		if stage.Plugin != "" {
			out = append(out, ofPlugin(stage, i))
			continue
		}
		options, wrong := v1alpha1.DecodeOptions(stage, with)
		if len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		made := delivery.Stage{ID: v1alpha1.StageID(stage, i), Name: v1alpha1.CanonicalStageName(stage.Name), Targets: stage.Targets}
		for _, wave := range stage.Waves {
			made.Waves = append(made.Waves, delivery.Wave{MaxConcurrency: wave.MaxConcurrency, Targets: wave.Targets})
		}
		if stage.Failure != nil {
			made.Failure = delivery.Failure{MaxFailures: stage.Failure.MaxFailures, OnUnreachable: string(stage.Failure.OnUnreachable)}
			made.Failure.After = time.Duration(ptr.Deref(stage.Failure.UnreachableSeconds, 0)) * time.Second
		}
		made.SkipOn = skipOn(stage)
		switch {
		case stage.Timeout != nil:
			made.Timeout = stage.Timeout.Duration
		case made.Name == v1alpha1.StageWaitApproval:
			made.Timeout = approvalTimeout
		}
		undone = append(undone, apply(&made, options, with)...)
		out = append(out, made)
	}
	return out, undone, errs
}

// StagesOf are the stages of an application. One that a plugin runs names a plugin, be it only the first one, as long as nobody knows which offers it.
func StagesOf(spec v1alpha1.ApplicationSpec) []v1alpha1.Stage {
	if spec.Pipeline == nil {
		return nil
	}
	out := slices.Clone(spec.Pipeline.Stages)
	for i := range out {
		if stage := &out[i]; stage.Plugin == "" && spec.RunByPlugin(stage) && len(spec.Plugins) > 0 {
			stage.Plugin = spec.Plugins[0].Name
		}
	}
	return out
}

// ofPlugin is a stage that a plugin runs. Its options are the plugin's alone to read.
func ofPlugin(stage *v1alpha1.Stage, position int) delivery.Stage {
	out := delivery.Stage{ID: v1alpha1.StageID(stage, position), Name: stage.Name, SkipOn: skipOn(stage), Plugin: stage.Plugin, Index: int32(position)}
	if stage.With != nil {
		out.With = stage.With.Raw
	}
	if stage.Timeout != nil {
		out.Timeout = stage.Timeout.Duration
	}
	if planned := stage.Planned; planned != nil {
		out.Index, out.RollsBack = planned.Index, planned.Rollback
	}
	return out
}

func skipOn(stage *v1alpha1.Stage) delivery.SkipOn {
	if stage.SkipOn == nil {
		return delivery.SkipOn{}
	}
	return delivery.SkipOn{Prefixes: stage.SkipOn.CommitMessagePrefixes, Paths: stage.SkipOn.Paths}
}

// apply reads the options of a stage, and says of those that come to nothing why. What stages change of the manifests themselves is in ChangesOf.
func apply(stage *delivery.Stage, options any, path *field.Path) (undone []string) {
	switch o := options.(type) {
	case *v1alpha1.PrimaryRolloutOptions:
		if o.Suffix != "" && !o.CreateService {
			undone = append(undone, path.Child("suffix").String()+" is not honoured: it is for the name of the primary's own Service, and createService is not set")
		}
	case *v1alpha1.CanaryRolloutOptions:
		stage.Copy = &delivery.CopyOptions{
			Replicas: ptr.Deref(o.Replicas, intstr.FromInt32(1)), PerCluster: o.PerCluster, Suffix: o.Suffix, Service: o.CreateService, Patches: o.Patches,
		}
	case *v1alpha1.BaselineRolloutOptions:
		stage.Copy = &delivery.CopyOptions{Replicas: ptr.Deref(o.Replicas, intstr.IntOrString{}), PerCluster: o.PerCluster, Suffix: o.Suffix, Service: o.CreateService}
	case *v1alpha1.TrafficRoutingOptions:
		stage.Traffic = traffic(o)
	case *v1alpha1.WaitOptions:
		stage.Wait = o.Duration.Duration
	case *v1alpha1.WaitApprovalOptions:
		stage.Approval = &delivery.Approval{Approvers: o.Approvers, Minimum: o.MinApproverNum, Comment: o.RequireComment}
		if o.Expiry != nil {
			stage.Approval.Expiry = o.Expiry.Duration
		}
	case *v1alpha1.AnalysisOptions:
		stage.Analysis = analysis(o)
	case *v1alpha1.ScriptRunOptions:
		stage.UndoesScript = o.OnRollback != ""
	}
	return undone
}

func traffic(o *v1alpha1.TrafficRoutingOptions) map[string]int32 {
	if o.All != "" {
		return map[string]int32{o.All: 100}
	}
	out := map[string]int32{}
	for name, share := range map[string]*v1alpha1.Percentage{delivery.Primary: o.Primary, delivery.Canary: o.Canary, delivery.Baseline: o.Baseline} {
		if share != nil {
			out[name] = int32(*share)
		}
	}
	return out
}

// analysis has a metric for each query, for each request, which is measured as 1 where the answer is good and 0 where it is not, for each kind of Job,
// and for restarts.
func analysis(o *v1alpha1.AnalysisOptions) *delivery.Analysis {
	out := &delivery.Analysis{Duration: o.Duration.Duration}
	for i, m := range o.Metrics {
		metric := delivery.Metric{
			Name: MetricName(i), Strategy: m.Strategy, Interval: m.Interval.Duration, FailureLimit: m.FailureLimit, SkipOnNoData: m.SkipOnNoData, Deviation: m.Deviation,
		}
		if m.Expected != nil {
			metric.Min, metric.Max = m.Expected.Min, m.Expected.Max
		}
		out.Metrics = append(out.Metrics, metric)
	}
	for i, request := range o.HTTPS {
		out.Metrics = append(out.Metrics, delivery.Metric{
			Name: RequestName(i), Strategy: delivery.Threshold, Interval: request.Interval.Duration, FailureLimit: request.FailureLimit, Min: ptr.To(1.0),
		})
	}
	for i := range o.Jobs {
		job := &o.Jobs[i]
		out.Metrics = append(out.Metrics, delivery.Metric{
			Name: JobName(i), Interval: ptr.Deref(job.Interval, metav1.Duration{}).Duration, FailureLimit: job.FailureLimit,
			Job: &delivery.JobOptions{Delay: ptr.Deref(job.InitialDelay, metav1.Duration{}).Duration, Timeout: JobTimeout(job)},
		})
	}
	if o.RestartThreshold > 0 {
		out.Metrics = append(out.Metrics, delivery.Metric{Name: Restarts, Strategy: delivery.Threshold, Interval: restartInterval, Max: ptr.To(float64(o.RestartThreshold))})
	}
	return out
}

// Restarts is the metric of how often containers have restarted.
const Restarts = "restarts"

// MetricName is the metric of a query, by its position.
func MetricName(i int) string { return fmt.Sprintf("metrics-%d", i) }

// RequestName is the metric of a request, by its position.
func RequestName(i int) string { return fmt.Sprintf("https-%d", i) }

// JobName is the metric of a Job, by its position.
func JobName(i int) string { return fmt.Sprintf("%s%d", jobPrefix, i) }

const jobPrefix = "jobs-"

// IsJob reports whether a metric is that of a Job.
func IsJob(metric string) bool { return strings.HasPrefix(metric, jobPrefix) }

// JobTimeout is how long a Job that measures may take.
func JobTimeout(job *v1alpha1.AnalysisJob) time.Duration {
	if job.Timeout == nil || job.Timeout.Duration <= 0 {
		return v1alpha1.AnalysisJobTimeout
	}
	return job.Timeout.Duration
}

// Orders are what people have asked of a release, from the first to the last. A retry that names no stage is of the one that has failed.
func Orders(requests []v1alpha1.ReleaseRequest, status delivery.Status) delivery.Orders {
	out := delivery.Orders{Skip: map[string]string{}, SkipAt: map[string]time.Time{}, SkipTargets: map[string]map[string]string{}, Retry: map[string]int32{}, RetryTargets: map[string][]string{}}
	for _, r := range requests {
		switch r.Type {
		case v1alpha1.RequestApprove:
			out.Approvals = append(out.Approvals, delivery.Assent{Stage: r.Stage, Attempt: r.Attempt, User: r.User, Groups: r.Groups, Comment: r.Comment, Time: r.Time.Time})
		case v1alpha1.RequestCancel:
			out.Cancel = &delivery.Cancel{By: r.User, Rollback: r.Rollback}
		case v1alpha1.RequestSkip:
			skip(out, r)
		case v1alpha1.RequestRetry:
			retry(out, r, status)
		case v1alpha1.RequestRollback:
			out.Rollback = r.User
		}
	}
	return out
}

// skip notes a stage that is left out, or those of its targets that are.
func skip(into delivery.Orders, r v1alpha1.ReleaseRequest) {
	if len(r.Targets) == 0 {
		into.Skip[r.Stage], into.SkipAt[r.Stage] = r.User, r.Time.Time
		return
	}
	if into.SkipTargets[r.Stage] == nil {
		into.SkipTargets[r.Stage] = map[string]string{}
	}
	for _, target := range r.Targets {
		into.SkipTargets[r.Stage][target] = r.User
	}
}

// retry notes which attempt of a stage is to follow. Attempts of the API count from 1, those of the engine from 0: so one's last is the other's next.
// A request that names none is about the attempt that had failed when it was made, and not about a later one.
func retry(into delivery.Orders, r v1alpha1.ReleaseRequest, status delivery.Status) {
	for _, of := range status.Stages {
		if of.Phase != delivery.Failed || r.Stage != "" && r.Stage != of.ID {
			continue
		}
		attempt := r.Attempt
		if attempt == 0 && !r.Time.Time.Before(of.End.Truncate(time.Second)) {
			attempt = of.Attempt + 1
		}
		if attempt > into.Retry[of.ID] {
			into.Retry[of.ID], into.RetryTargets[of.ID] = attempt, r.Targets
		}
	}
}
