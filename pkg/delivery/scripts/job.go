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
	"github.com/manifold-dev/manifold/pkg/delivery/read"
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
	asked, err := askedOf(run)
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelApplication: run.Application.Name}, Annotations: map[string]string{annotationScript: run.Name}}
	template := corev1.PodTemplateSpec{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PodSpec{
		RestartPolicy:      corev1.RestartPolicyNever,
		ServiceAccountName: asked.account,
		// A script that names no ServiceAccount has nothing to say to the API.
		AutomountServiceAccountToken: ptr.To(asked.account != ""),
		Containers: []corev1.Container{{
			Name: container, Image: asked.image, Command: asked.command, Args: asked.args, Env: s.env(run, asked.env),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
	}}
	meta.Namespace, meta.Name = run.Release.Namespace, jobName(run)
	meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run.Release, v1alpha1.SchemeGroupVersion.WithKind("Release"))}
	meta.OwnerReferences[0].BlockOwnerDeletion = nil
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To(asked.backoff), ActiveDeadlineSeconds: ptr.To(max(1, int64(asked.within/time.Second))), Template: template,
	}}, nil
}

// asked is what a stage says of a Job.
type asked struct {
	image, account string
	command, args  []string
	env            map[string]string
	backoff        int32
	within         time.Duration
}

func askedOf(run Run) (asked, error) {
	decoded, errs := v1alpha1.DecodeOptions(&run.Stage, field.NewPath("with"))
	if len(errs) > 0 {
		return asked{}, fmt.Errorf("stage %s: %w", run.Stage.ID, errs.ToAggregate())
	}
	switch options := decoded.(type) {
	case *v1alpha1.ScriptRunOptions:
		return script(run, options)
	case *v1alpha1.AnalysisOptions:
		return measurement(run, options)
	}
	return asked{}, fmt.Errorf("stage %s: %s has no script", run.Stage.ID, run.Stage.Name)
}

func script(run Run, options *v1alpha1.ScriptRunOptions) (asked, error) {
	text := options.Run
	if run.Undo {
		text = options.OnRollback
	}
	if text == "" || options.Image == "" {
		return asked{}, fmt.Errorf("stage %s: with: image and script are needed", run.Stage.ID)
	}
	out := asked{image: options.Image, account: options.ServiceAccountName, command: shell(text), env: options.Env, within: mostTime}
	if limit := run.Stage.Timeout; limit != nil && limit.Duration > 0 {
		out.within = limit.Duration
	}
	return out, nil
}

func measurement(run Run, options *v1alpha1.AnalysisOptions) (asked, error) {
	for i, job := range options.Jobs {
		if read.JobName(i) != run.Metric {
			continue
		}
		if job.Image == "" {
			return asked{}, fmt.Errorf("stage %s: with: jobs[%d]: image is needed", run.Stage.ID, i)
		}
		out := asked{
			image: job.Image, account: job.ServiceAccountName, command: job.Command, args: job.Args, env: job.Env, backoff: job.BackoffLimit,
			within: read.JobTimeout(&job),
		}
		if job.Run != "" {
			out.command, out.args = shell(job.Run), nil
		}
		return out, nil
	}
	return asked{}, fmt.Errorf("stage %s: there is no Job %q", run.Stage.ID, run.Metric)
}

// shell is the command that runs a script.
func shell(script string) []string { return []string{"/bin/sh", "-c", literal(script)} }

// jobName begins with the release and the run, to be found by people. What it ends in tells it from those of another release that has had the same
// name, or one that is the same when it is cut.
func jobName(run Run) string {
	sum := sha256.Sum256([]byte(string(run.Release.UID) + "/" + run.Name))
	tail := "-" + hex.EncodeToString(sum[:5])
	name := plain.Replace(run.Release.Name)
	if what := plain.Replace(run.Name); len(validation.IsDNS1123Label(what)) == 0 {
		name += "-" + what
	}
	return strings.TrimRight(name[:min(len(name), validation.DNS1123LabelMaxLength-len(tail))], "-") + tail
}

// plain leaves nothing in a name that may not be in that of a Job.
var plain = strings.NewReplacer(".", "-", "/", "-")

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
