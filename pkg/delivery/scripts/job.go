package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const (
	// annotationScript is the name of the run on its Job.
	annotationScript = "delivery.manifold.dev/script"
	// container is the name of the Job's only container.
	container = "script"
	// mostTime is how long a script may take whose stage does not say: as long as PipeCD gives a stage.
	mostTime = 6 * time.Hour
)

// job is the Job of a run. It is the same whenever it is asked for.
func (s *Scripts) job(run Run) (*batchv1.Job, error) {
	decoded, errs := v1alpha1.DecodeOptions(&run.Stage, field.NewPath("with"))
	if len(errs) > 0 {
		return nil, fmt.Errorf("stage %s: %w", run.Stage.ID, errs.ToAggregate())
	}
	options, ok := decoded.(*v1alpha1.ScriptRunOptions)
	if !ok {
		return nil, fmt.Errorf("stage %s: %s has no script", run.Stage.ID, run.Stage.Name)
	}
	script := options.Run
	if run.Undo {
		script = options.OnRollback
	}
	if script == "" || options.Image == "" {
		return nil, fmt.Errorf("stage %s: with: image and script are needed", run.Stage.ID)
	}
	meta := metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelApplication: run.Application.Name}, Annotations: map[string]string{annotationScript: run.Name}}
	template := corev1.PodTemplateSpec{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PodSpec{
		RestartPolicy:      corev1.RestartPolicyNever,
		ServiceAccountName: options.ServiceAccountName,
		// A script that names no ServiceAccount has nothing to say to the API.
		AutomountServiceAccountToken: ptr.To(options.ServiceAccountName != ""),
		Containers: []corev1.Container{{
			Name: container, Image: options.Image, Command: []string{"/bin/sh", "-c", literal(script)}, Env: s.env(run, options.Env),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
	}}
	meta.Namespace, meta.Name = run.Release.Namespace, jobName(run)
	meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run.Release, v1alpha1.SchemeGroupVersion.WithKind("Release"))}
	meta.OwnerReferences[0].BlockOwnerDeletion = nil
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To(int32(0)), ActiveDeadlineSeconds: ptr.To(deadline(run.Stage)), Template: template,
	}}, nil
}

func deadline(stage v1alpha1.Stage) int64 {
	if stage.Timeout == nil || stage.Timeout.Duration <= 0 {
		return int64(mostTime / time.Second)
	}
	return max(1, int64(stage.Timeout.Duration/time.Second))
}

// jobName begins with the release and the run, to be found by people. What it ends in tells it from those of another release that has had the same
// name, or one that is the same when it is cut.
func jobName(run Run) string {
	sum := sha256.Sum256([]byte(string(run.Release.UID) + "/" + run.Name))
	tail := "-" + hex.EncodeToString(sum[:5])
	name := strings.ReplaceAll(run.Release.Name+"-"+strings.ToLower(run.Name), ".", "-")
	if len(validation.IsDNS1123Label(strings.ReplaceAll(run.Name, ".", "-"))) > 0 {
		name = strings.ReplaceAll(run.Release.Name, ".", "-")
	}
	return strings.TrimRight(name[:min(len(name), validation.DNS1123LabelMaxLength-len(tail))], "-") + tail
}

// literal writes a text such that the kubelet, which puts variables in place of $(NAME), leaves it as it is.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// env are the variables of the stage, and those by which PipeCD tells a script what it runs for.
func (s *Scripts) env(run Run, own map[string]string) []corev1.EnvVar {
	all := map[string]string{
		"SR_DEPLOYMENT_ID": run.Release.Name, "SR_APPLICATION_ID": run.Application.Name, "SR_APPLICATION_NAME": run.Application.Name,
		"SR_TRIGGERED_AT": strconv.FormatInt(run.Release.CreationTimestamp.Unix(), 10), "SR_SUMMARY": run.Release.Spec.TriggeredBy.Message,
		"SR_TRIGGERED_COMMIT_HASH": "", "SR_REPOSITORY_URL": "", "SR_IS_ROLLBACK": strconv.FormatBool(run.Undo),
	}
	if revision, err := s.Revisions.ApplicationRevisions(run.Release.Namespace).Get(run.Release.Spec.Revision); err == nil && revision.Spec.Origin != nil {
		all["SR_TRIGGERED_COMMIT_HASH"], all["SR_REPOSITORY_URL"] = revision.Spec.Origin.Commit, revision.Spec.Origin.URL
	}
	all["SR_CONTEXT_RAW"] = contextOf(all, run.Application.Labels)
	for key, value := range run.Application.Labels {
		if name := "SR_LABELS_" + strings.ToUpper(key); len(validation.IsCIdentifier(name)) == 0 {
			all[name] = value
		}
	}
	maps.Copy(all, own)
	var out []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, corev1.EnvVar{Name: name, Value: literal(all[name])})
	}
	return out
}

// contextOf is what PipeCD hands over in SR_CONTEXT_RAW.
func contextOf(env, labels map[string]string) string {
	at, _ := strconv.ParseInt(env["SR_TRIGGERED_AT"], 10, 64)
	out, err := json.Marshal(struct {
		DeploymentID        string            `json:"deploymentID"`
		ApplicationID       string            `json:"applicationID"`
		ApplicationName     string            `json:"applicationName"`
		TriggeredAt         int64             `json:"triggeredAt"`
		TriggeredCommitHash string            `json:"triggeredCommitHash"`
		RepositoryURL       string            `json:"repositoryURL"`
		Summary             string            `json:"summary"`
		Labels              map[string]string `json:"labels,omitempty"`
		IsRollback          bool              `json:"isRollback"`
	}{
		env["SR_DEPLOYMENT_ID"], env["SR_APPLICATION_ID"], env["SR_APPLICATION_NAME"], at, env["SR_TRIGGERED_COMMIT_HASH"], env["SR_REPOSITORY_URL"], env["SR_SUMMARY"],
		labels, env["SR_IS_ROLLBACK"] == "true",
	})
	if err != nil {
		return "" // texts and numbers can always be written
	}
	return string(out)
}
