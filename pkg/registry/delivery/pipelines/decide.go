package pipelines

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	// longestMessage bounds what people say, which is kept in the pipeline.
	longestMessage = 1024
	// longestShown bounds what an error repeats of a status.
	longestShown = 512
)

// change is what of the status of a pipeline somebody has changed; nil if all is as they ask.
type change map[string]any

// promote returns the change by which a version is asked for in an environment. It fills in which one it is.
func promote(p *weave.Pipeline, body runtime.Object, by v1alpha1.PipelineRecord) (change, error) {
	asked := body.(*v1alpha1.PipelinePromotion)
	by.Message = asked.Message
	if err := bounded(p, asked.Message); err != nil {
		return nil, err
	}
	at, err := environment(p, asked.Environment)
	if err != nil {
		return nil, err
	}
	if pause := p.Status.Paused; pause != nil {
		return nil, conflict(p, "it is paused by %s; resume it first", text.Line(pause.By, longestShown))
	}
	if asked.Revision == "" {
		if asked.Revision = waiting(p, asked.Environment); asked.Revision == "" {
			return nil, conflict(p, "no version waits for environment %q; name one: %s", asked.Environment, choice(p, at))
		}
	}
	if !slices.Contains(revisions(p, at), asked.Revision) {
		return nil, invalid(p, field.Invalid(field.NewPath("revision"), asked.Revision,
			fmt.Sprintf("it must be one that waits for environment %q, that the environment before has verified, or that another one runs: %s", asked.Environment, choice(p, at))))
	}
	asked.Recorded = &by
	return change{"environments": map[string]any{asked.Environment: map[string]any{"asked": recorded(by, map[string]any{"revision": asked.Revision})}}}, nil
}

// pause returns the change by which nothing is promoted any more. Who has paused a pipeline first stays written down.
func pause(p *weave.Pipeline, body runtime.Object, by v1alpha1.PipelineRecord) (change, error) {
	asked := body.(*v1alpha1.PipelinePause)
	by.Message = asked.Message
	if err := bounded(p, asked.Message); err != nil {
		return nil, err
	}
	if before := p.Status.Paused; before != nil {
		asked.Recorded = recordOf(before)
		return nil, nil
	}
	asked.Recorded = &by
	return change{"paused": recorded(by, map[string]any{})}, nil
}

// resume returns the change that ends a pause.
func resume(p *weave.Pipeline, body runtime.Object, _ v1alpha1.PipelineRecord) (change, error) {
	asked := body.(*v1alpha1.PipelineResumption)
	asked.Recorded = recordOf(p.Status.Paused)
	if asked.Recorded == nil {
		return nil, nil
	}
	return change{"paused": nil}, nil
}

func recordOf(pause *weave.Pause) *v1alpha1.PipelineRecord {
	if pause == nil {
		return nil
	}
	return &v1alpha1.PipelineRecord{By: pause.By, At: pause.At, Message: pause.Message}
}

// recorded adds who it was to what is written down. What was said before goes, also if nothing is said now.
func recorded(by v1alpha1.PipelineRecord, what map[string]any) map[string]any {
	what["by"], what["at"], what["message"] = by.By, by.At, nil
	if by.Message != "" {
		what["message"] = by.Message
	}
	return what
}

func bounded(p *weave.Pipeline, message string) error {
	if len(message) > longestMessage {
		return invalid(p, field.TooLong(field.NewPath("message"), "", longestMessage))
	}
	return nil
}

// environment returns where an environment is in a pipeline.
func environment(p *weave.Pipeline, name string) (int, error) {
	path := field.NewPath("environment")
	if name == "" {
		return 0, invalid(p, field.Required(path, "one of "+names(p)))
	}
	at := slices.IndexFunc(p.Spec.Environments, func(e weave.Environment) bool { return e.Name == name })
	if at < 0 {
		err := field.NotFound(path, name)
		err.Detail = "the pipeline has " + names(p)
		return 0, invalid(p, err)
	}
	return at, nil
}

func names(p *weave.Pipeline) string {
	var out []string
	for _, e := range p.Spec.Environments {
		out = append(out, e.Name)
	}
	return list(out)
}

// waiting returns the version that waits for an environment, "" if none does.
func waiting(p *weave.Pipeline, environment string) string {
	if of := p.Status.Environments[environment]; of != nil && of.WaitingStatus != nil {
		return of.WaitingStatus.Revision
	}
	return ""
}

// revisions are those that somebody may ask for in an environment: what waits, what was verified before it, and what any environment runs.
func revisions(p *weave.Pipeline, at int) []string {
	var out []string
	add := func(revision string) {
		if revision != "" && !slices.Contains(out, revision) {
			out = append(out, revision)
		}
	}
	add(waiting(p, p.Spec.Environments[at].Name))
	if at > 0 {
		if before := p.Status.Environments[p.Spec.Environments[at-1].Name]; before != nil && before.Promotion != nil && before.Promotion.Phase == weave.PromotionVerified {
			add(before.Promotion.Revision)
		}
	}
	for _, e := range p.Spec.Environments {
		for _, revision := range running(p.Status.Environments[e.Name]) {
			add(revision)
		}
	}
	return out
}

// running are the versions that the targets of an environment run.
func running(of *weave.EnvironmentStatus) []string {
	var out []string
	if of == nil {
		return nil
	}
	for i := range of.Targets {
		out = append(out, promotion.RevisionOf(of.Targets[i].Workloads))
	}
	return out
}

func choice(p *weave.Pipeline, at int) string {
	known := revisions(p, at)
	if len(known) == 0 {
		return "none is known yet"
	}
	return list(known)
}

func list(of []string) string { return text.Line(fmt.Sprintf("%q", of), longestShown) }

func invalid(p *weave.Pipeline, err *field.Error) error {
	return apierrors.NewInvalid(v1alpha1.Kind(weave.Kind), p.Name, field.ErrorList{err})
}

// conflict refuses what the pipeline is not in the state for.
func conflict(p *weave.Pipeline, format string, args ...any) error {
	err := apierrors.NewConflict(v1alpha1.Resource(v1alpha1.ResourcePipelines), p.Name, nil)
	err.ErrStatus.Message = fmt.Sprintf("pipeline %q: ", p.Name) + fmt.Sprintf(format, args...)
	return err
}

// moment is a time as precise as it is stored.
func moment(now metav1.Time) metav1.Time { return now.Rfc3339Copy() }
