package v1alpha1

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_ApplicationSpec fills in limits and deadlines.
func SetDefaults_ApplicationSpec(spec *ApplicationSpec) {
	for field, value := range map[**int32]int32{
		&spec.RevisionHistoryLimit:    10,
		&spec.ReleaseHistoryLimit:     10,
		&spec.ProgressDeadlineSeconds: 600,
	} {
		if *field == nil {
			*field = ptr.To(value)
		}
	}
}

// SetDefaults_GitSource asks a repository every minute.
func SetDefaults_GitSource(git *GitSource) {
	if git.Interval == nil {
		git.Interval = &metav1.Duration{Duration: time.Minute}
	}
}

// SetDefaults_WorkloadReference takes a workload without a kind for a Deployment.
func SetDefaults_WorkloadReference(workload *WorkloadReference) {
	workload.Kind = cmp.Or(workload.Kind, "Deployment")
}

// SetDefaults_VariantLabel names the label and its values.
func SetDefaults_VariantLabel(label *VariantLabel) {
	label.Key = cmp.Or(label.Key, LabelVariant)
	label.PrimaryValue = cmp.Or(label.PrimaryValue, VariantPrimary)
	label.CanaryValue = cmp.Or(label.CanaryValue, VariantCanary)
	label.BaselineValue = cmp.Or(label.BaselineValue, VariantBaseline)
}

// SetDefaults_Notification sends JSON.
func SetDefaults_Notification(notification *Notification) {
	notification.Type = cmp.Or(notification.Type, NotificationWebhook)
}

// SetDefaults_FailurePolicy waits for clusters that cannot be reached.
func SetDefaults_FailurePolicy(failure *FailurePolicy) {
	failure.OnUnreachable = cmp.Or(failure.OnUnreachable, UnreachableWait)
	if failure.UnreachableSeconds == nil {
		failure.UnreachableSeconds = ptr.To(int32(30))
	}
}

// SetDefaults_Trigger releases new revisions one after the other.
func SetDefaults_Trigger(trigger *Trigger) {
	trigger.Mode = cmp.Or(trigger.Mode, TriggerAutomatic)
	trigger.Concurrency = cmp.Or(trigger.Concurrency, ConcurrencyQueue)
}

// SetDefaults_Traffic lets variants answer what they have begun with.
func SetDefaults_Traffic(traffic *Traffic) {
	if traffic.DrainSeconds == nil {
		traffic.DrainSeconds = ptr.To(int32(30))
	}
}

// SetDefaults_ReleaseTrigger takes a release that does not say why it is there for somebody's wish.
func SetDefaults_ReleaseTrigger(trigger *ReleaseTrigger) {
	trigger.Cause = cmp.Or(trigger.Cause, CauseCommand)
}

// SetDefaults_PluginSpec gives a process half a minute to end, which is what plugins reckon with.
func SetDefaults_PluginSpec(spec *PluginSpec) {
	spec.LogLevel = cmp.Or(spec.LogLevel, PluginLogInfo)
	if spec.GracePeriodSeconds == nil {
		spec.GracePeriodSeconds = ptr.To(int32(30))
	}
}

// SetDefaults_PluginLimits bounds what every process may use.
func SetDefaults_PluginLimits(limits *PluginLimits) {
	if limits.Memory == nil {
		limits.Memory = ptr.To(resource.MustParse("1Gi"))
	}
	if limits.Files == nil {
		limits.Files = ptr.To(int64(1024))
	}
	if limits.Processes == nil {
		limits.Processes = ptr.To(int64(512))
	}
}
