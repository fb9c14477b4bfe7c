package scripts

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Options say what Scripts work with. The listers are of the logical cluster.
type Options struct {
	Jobs      batchlisters.JobLister
	Pods      corelisters.PodLister
	Revisions listers.ApplicationRevisionLister
	// Client returns who writes the objects of an application.
	Client func(app *v1alpha1.Application) (kubernetes.Interface, error)
}

// Scripts runs scripts. It may be used by several goroutines.
type Scripts struct{ Options }

// New returns Scripts.
func New(o Options) *Scripts { return &Scripts{o} }

// Run is one run of a stage's script, or of a Job that measures for it.
type Run struct {
	Application *v1alpha1.Application
	Release     *v1alpha1.Release
	// Stage is the stage SCRIPT_RUN, also of what takes it back, or the stage ANALYSIS.
	Stage v1alpha1.Stage
	// Name is unique in the release.
	Name string
	// Undo says that the script for rollbacks is meant.
	Undo bool
	// Metric is what a stage ANALYSIS measures by the Job.
	Metric string
}

func (r Run) String() string {
	return fmt.Sprintf("%s %s of release %s/%s", r.what(), r.Name, r.Release.Namespace, r.Release.Name)
}

// what is the kind of what runs, for people.
func (r Run) what() string {
	if r.Metric != "" {
		return "Job"
	}
	return "script"
}

// Outcome has the script run if it does not yet, and returns how far it is. A Job that is refused is the script's failure; an error is worth another
// try.
func (s *Scripts) Outcome(ctx context.Context, run Run) (delivery.Outcome, error) {
	wanted, err := s.job(run)
	if err != nil {
		return failed(err.Error()), nil
	}
	job, err := s.Jobs.Jobs(wanted.Namespace).Get(wanted.Name)
	if apierrors.IsNotFound(err) {
		job, err = s.create(ctx, run, wanted)
	}
	switch {
	case refused(err):
		return failed(fmt.Sprintf("Job %s/%s is refused: %v", wanted.Namespace, wanted.Name, err)), nil
	case err != nil:
		return delivery.Outcome{}, fmt.Errorf("run %s as Job %s/%s: %w", run, wanted.Namespace, wanted.Name, err)
	case !metav1.IsControlledBy(job, run.Release):
		return failed(fmt.Sprintf("Job %s/%s is there already and not of this release; delete it and retry the stage", job.Namespace, job.Name)), nil
	}
	return s.outcome(ctx, run, job), nil
}

// create makes the Job, or returns the one that a cache did not show yet.
func (s *Scripts) create(ctx context.Context, run Run, wanted *batchv1.Job) (*batchv1.Job, error) {
	client, err := s.Client(run.Application)
	if err != nil {
		return nil, err
	}
	jobs := client.BatchV1().Jobs(wanted.Namespace)
	job, err := jobs.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return jobs.Get(ctx, wanted.Name, metav1.GetOptions{})
	}
	return job, err
}

// fieldManager is the name under which delivery writes objects.
const fieldManager = "manifold-delivery"

// refused reports whether an error is about what was asked, so that asking again is of no use until somebody changes something.
func refused(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, "NamespaceTerminating") || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func failed(message string) delivery.Outcome {
	return delivery.Outcome{Phase: delivery.Failed, Message: message}
}

// outcome is what a Job says of its script, with the last line that it has written.
func (s *Scripts) outcome(ctx context.Context, run Run, job *batchv1.Job) delivery.Outcome {
	phase, reason := phaseOf(job)
	switch phase {
	case delivery.Running:
		return delivery.Outcome{Phase: phase, Message: s.waiting(job), Since: job.CreationTimestamp.Time}
	case delivery.Succeeded:
		if run.Metric != "" {
			return delivery.Outcome{Phase: phase} // nobody shows what it has written but the log, and there are many
		}
		return delivery.Outcome{Phase: phase, Message: s.last(ctx, run, job)}
	}
	out := failed("the " + run.what() + " has failed: " + reason)
	if last := s.last(ctx, run, job); last != "" {
		out.Message += ": " + last
	}
	return out
}

// phaseOf reads the conditions of a Job.
func phaseOf(job *batchv1.Job) (delivery.Phase, string) {
	for _, condition := range job.Status.Conditions {
		if condition.Status != "True" {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			return delivery.Succeeded, ""
		case batchv1.JobFailed:
			if condition.Reason == batchv1.JobReasonDeadlineExceeded {
				return delivery.Failed, fmt.Sprintf("it has not ended within %ds", ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0))
			}
			return delivery.Failed, delivery.Said(condition.Message)
		}
	}
	if job.DeletionTimestamp != nil {
		return delivery.Failed, "its Job was deleted"
	}
	return delivery.Running, ""
}

// Stop ends the scripts of a release, and its Jobs that measure, but for those whose names are kept. Those that have ended stay, to be looked at; of
// Jobs that have measured the same the last ones do.
func (s *Scripts) Stop(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release, keep func(name string) bool) error {
	jobs, err := s.Jobs.Jobs(release.Namespace).List(labels.SelectorFromSet(labels.Set{v1alpha1.LabelApplication: app.Name}))
	if err != nil {
		return err
	}
	jobs = slices.DeleteFunc(jobs, func(job *batchv1.Job) bool { return !metav1.IsControlledBy(job, release) })
	newest := newestOf(jobs)
	for _, job := range jobs {
		name := job.Annotations[annotationScript]
		goes := outdated(name, newest)
		if phase, _ := phaseOf(job); phase == delivery.Running {
			goes = !keep(name)
		}
		if !goes || job.DeletionTimestamp != nil {
			continue
		}
		client, err := s.Client(app)
		if err != nil {
			return err
		}
		err = client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: metav1.NewUIDPreconditions(string(job.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete Job %s/%s, which has run %s for release %s: %w", job.Namespace, job.Name, name, release.Name, err)
		}
	}
	return nil
}

// newestOf is the last measurement of each metric and attempt that there is a Job of.
func newestOf(jobs []*batchv1.Job) map[string]int {
	out := map[string]int{}
	for _, job := range jobs {
		if of, number, is := delivery.CutMeasurement(job.Annotations[annotationScript]); is {
			out[of] = max(out[of], number)
		}
	}
	return out
}

// outdated reports whether a name is that of a measurement which so many others have followed that its Job need not stay.
func outdated(name string, newest map[string]int) bool {
	of, number, is := delivery.CutMeasurement(name)
	return is && number <= newest[of]-delivery.KeptJobs
}
