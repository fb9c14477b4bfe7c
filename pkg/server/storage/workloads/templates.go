package workloads

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	cronjobstore "k8s.io/kubernetes/pkg/registry/batch/cronjob/storage"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

// What clusters make of templates carries the labels and annotations that stand there. With a mark of Manifold among them, it would be taken
// for what Manifold has made itself. So users write none into templates, nor into selectors, by which they would ask for them.

// mark is a reserved key in a template or selector, or a key of users' own with a value that means nothing.
type mark struct {
	path  *field.Path
	value string
	// values are those that users may write; none for a reserved key.
	values []string
}

// marks gathers the reserved keys in an object.
type marks struct {
	found []mark
}

// validateTemplates refuses the reserved keys that obj has in templates and selectors and that old, which may be nil, has not: what was stored
// by an earlier version must stay editable in everything else.
func validateTemplates(ctx context.Context, obj, old projection.Object) field.ErrorList {
	if identity.WritesMirrors(ctx) {
		return nil // clusters have made what it shows
	}
	had := map[string]string{}
	if old != nil {
		for _, m := range marksIn(old) {
			had[m.path.String()] = m.value
		}
	}
	var errs field.ErrorList
	for _, m := range marksIn(obj) {
		if was, stored := had[m.path.String()]; !stored || was != m.value {
			errs = append(errs, m.refusal())
		}
	}
	return errs
}

func (m mark) refusal() *field.Error {
	if len(m.values) > 0 {
		return field.NotSupported(m.path, m.value, m.values)
	}
	return field.Forbidden(m.path, "is reserved for Manifold")
}

// marksIn returns the reserved keys and wrong values in the templates and selectors of an object, in the order of its fields.
func marksIn(obj projection.Object) []mark {
	var m marks
	spec := field.NewPath("spec")
	switch o := obj.(type) {
	case *corev1.Pod:
		m.api(&o.ObjectMeta, field.NewPath("metadata"))
		m.pods(&o.Spec, spec)
	case *appsv1.StatefulSet:
		m.workload(o, spec)
		for i := range o.Spec.VolumeClaimTemplates {
			m.metadata(&o.Spec.VolumeClaimTemplates[i].ObjectMeta, spec.Child("volumeClaimTemplates").Index(i))
		}
	case *corev1.ReplicationController:
		m.pairs(o.Spec.Selector, spec.Child("selector"))
		if o.Spec.Template != nil {
			m.template(o.Spec.Template, spec)
		}
	case *batchv1.CronJob:
		m.metadata(&o.Spec.JobTemplate.ObjectMeta, spec.Child("jobTemplate"))
		m.selector(o.Spec.JobTemplate.Spec.Selector, spec.Child("jobTemplate", "spec"))
		m.template(&o.Spec.JobTemplate.Spec.Template, spec.Child("jobTemplate", "spec"))
	default:
		m.workload(obj, spec)
	}
	return m.found
}

// workload looks where most kinds of workloads have their selector and their template.
func (m *marks) workload(in projection.Object, spec *field.Path) {
	if kind, known := projection.KindOf(in); known && kind.Workload {
		m.selector(kind.Controls(in), spec)
		m.template(kind.Demand(in).Template, spec)
	}
}

func (m *marks) template(in *corev1.PodTemplateSpec, under *field.Path) {
	m.metadata(&in.ObjectMeta, under.Child("template"))
	m.api(&in.ObjectMeta, under.Child("template", "metadata"))
	m.pods(&in.Spec, under.Child("template", "spec"))
}

func (m *marks) pods(in *corev1.PodSpec, at *field.Path) {
	for i := range in.Volumes {
		if ephemeral := in.Volumes[i].Ephemeral; ephemeral != nil && ephemeral.VolumeClaimTemplate != nil {
			m.metadata(&ephemeral.VolumeClaimTemplate.ObjectMeta, at.Child("volumes").Index(i).Child("ephemeral", "volumeClaimTemplate"))
		}
	}
}

// api finds a value of the annotation about the API that is none. Pods would call another API than their user believes.
func (m *marks) api(in *metav1.ObjectMeta, at *field.Path) {
	values := []string{v1alpha1.APILogical, v1alpha1.APICluster}
	if value, ok := in.Annotations[v1alpha1.AnnotationAPI]; ok && !slices.Contains(values, value) {
		m.found = append(m.found, mark{at.Child("annotations").Key(v1alpha1.AnnotationAPI), value, values})
	}
}

func (m *marks) metadata(in *metav1.ObjectMeta, of *field.Path) {
	m.pairs(in.Labels, of.Child("metadata", "labels"))
	m.pairs(in.Annotations, of.Child("metadata", "annotations"))
}

func (m *marks) selector(in *metav1.LabelSelector, under *field.Path) {
	if in == nil {
		return
	}
	m.pairs(in.MatchLabels, under.Child("selector", "matchLabels"))
	for i, requirement := range in.MatchExpressions {
		if v1alpha1.ReservedKey(requirement.Key) {
			m.found = append(m.found, mark{path: under.Child("selector", "matchExpressions").Index(i).Child("key"), value: requirement.Key})
		}
	}
}

func (m *marks) pairs(in map[string]string, at *field.Path) {
	var keys []string
	for key := range in {
		if v1alpha1.ReservedKey(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		m.found = append(m.found, mark{path: at.Key(key), value: in[key]})
	}
}

// cronJobStrategy is for the one kind with templates that is no workload.
type cronJobStrategy struct {
	builtin.Strategy
}

func (s cronJobStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return append(s.Strategy.Validate(ctx, obj), validateCronJob(ctx, obj, nil)...)
}

func (s cronJobStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return append(s.Strategy.ValidateUpdate(ctx, obj, old), validateCronJob(ctx, obj, old)...)
}

func validateCronJob(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	var before projection.Object
	job, err := versionedCronJob(obj)
	if err == nil && old != nil {
		before, err = versionedCronJob(old)
	}
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validateTemplates(ctx, job, before)
}

func versionedCronJob(obj runtime.Object) (*batchv1.CronJob, error) {
	out := &batchv1.CronJob{}
	if err := legacyscheme.Scheme.Convert(obj.(*batch.CronJob), out, nil); err != nil {
		return nil, fmt.Errorf("read a CronJob: %w", err)
	}
	return out, nil
}

func changeCronJobs(storage map[string]rest.Storage) error {
	jobs, err := builtin.Lookup[*cronjobstore.REST](storage, "cronjobs")
	if err != nil {
		return err
	}
	return builtin.WrapStrategies(jobs.Store, func(s builtin.Strategy) builtin.Strategy { return cronJobStrategy{s} })
}
