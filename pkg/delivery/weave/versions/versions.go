// Package versions reads what objects say of themselves as workloads of a pipeline's target: which version they are of, whether that has been taken over
// and is ready, or has failed.
//
// Objects are written by strangers: users, and clusters that may send anything. What does not read as it should says nothing, and what is said is bounded.
package versions

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// What is said of one workload is bounded by these, in bytes but for the images. Together they leave room for some fifty workloads in each of many targets.
const (
	mostName     = 253
	mostVersion  = 1024
	mostRevision = 512
	mostImage    = 512
	mostImages   = 20
)

// Kinds whose objects are workloads of a target.
var (
	HelmRelease   = schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}
	Kustomization = schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}
	Deployment    = appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
	StatefulSet   = appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind()
	DaemonSet     = appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind()
	CronJob       = batchv1.SchemeGroupVersion.WithKind("CronJob").GroupKind()
	Application   = v1alpha1.SchemeGroupVersion.WithKind("Application").GroupKind()
)

// Custom are the kinds that are there only where somebody has defined them, with their resources, and BuiltIn those that every cluster has.
var (
	Custom  = map[schema.GroupKind]schema.GroupResource{}
	BuiltIn = map[schema.GroupKind]schema.GroupVersionResource{}
)

func init() {
	for _, workload := range weave.Workloads {
		switch workload.GroupKind {
		case HelmRelease, Kustomization:
			Custom[workload.GroupKind] = workload.GroupResource()
		case Deployment, StatefulSet, DaemonSet, CronJob:
			BuiltIn[workload.GroupKind] = workload.GroupResource().WithVersion("v1")
		}
	}
}

// Of returns what an object says of itself. Of one that does not count as a workload, or does not read as its kind, nothing is known.
func Of(object runtime.Object) (out weave.WorkloadStatus, known bool) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return deployment(o), true
	case *appsv1.StatefulSet:
		return statefulSet(o), true
	case *appsv1.DaemonSet:
		return daemonSet(o), true
	case *batchv1.CronJob:
		return cronJob(o), true
	case *v1alpha1.Application:
		return application(o), true
	case *unstructured.Unstructured:
		return ofUnstructured(o)
	}
	return weave.WorkloadStatus{}, false
}

func ofUnstructured(o *unstructured.Unstructured) (weave.WorkloadStatus, bool) {
	switch o.GroupVersionKind().GroupKind() {
	case HelmRelease:
		return helmRelease(o), true
	case Kustomization:
		return kustomization(o), true
	case Deployment:
		return typed(o, &appsv1.Deployment{})
	case StatefulSet:
		return typed(o, &appsv1.StatefulSet{})
	case DaemonSet:
		return typed(o, &appsv1.DaemonSet{})
	case CronJob:
		return typed(o, &batchv1.CronJob{})
	}
	return weave.WorkloadStatus{}, false
}

// typed reads an object as one of its type.
func typed(o *unstructured.Unstructured, into runtime.Object) (weave.WorkloadStatus, bool) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		out := begin(o.GetKind(), o)
		out.Message = "it does not read as what it should be"
		return out, true
	}
	return Of(into)
}

// begin is what every object says.
func begin(kind string, o metav1.Object) weave.WorkloadStatus {
	return weave.WorkloadStatus{Kind: text.Line(kind, mostName), Name: text.Line(o.GetName(), mostName)}
}

// Part reports whether an object is part of a pipeline: it carries its label, or is its app.
func Part(of *weave.Pipeline, kind schema.GroupKind, o metav1.Object) bool {
	return Labelled(of.Name, o.GetLabels()) || Names(of.Spec.AppRef, kind, o.GetName())
}

// Labelled reports whether labels name a pipeline, in any of the two spellings.
func Labelled(pipeline string, labels map[string]string) bool {
	return pipeline != "" && (labels[weave.PipelineLabel] == pipeline || labels[weave.OlderPipelineLabel] == pipeline)
}

// Names reports whether a reference to an app names an object. Whoever wrote it may know the kind by another version.
func Names(app *weave.AppReference, kind schema.GroupKind, name string) bool {
	return app != nil && app.Name == name && KindOf(app) == kind
}

// KindOf returns the kind of an app.
func KindOf(app *weave.AppReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(app.APIVersion, app.Kind).GroupKind()
}

// Sort orders workloads by kind and name, so that what is told of them stays when it is the same.
func Sort(workloads []weave.WorkloadStatus) {
	slices.SortFunc(workloads, func(a, b weave.WorkloadStatus) int {
		switch {
		case a.Kind != b.Kind:
			return compare(a.Kind, b.Kind)
		default:
			return compare(a.Name, b.Name)
		}
	})
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}
