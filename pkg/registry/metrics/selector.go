package metrics

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// selector says which objects a request is about.
type selector struct {
	labels labels.Selector
	fields fields.Selector
}

func selectorOf(options *metainternalversion.ListOptions) selector {
	s := selector{labels: labels.Everything(), fields: fields.Everything()}
	if options != nil && options.LabelSelector != nil {
		s.labels = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		s.fields = options.FieldSelector
	}
	return s
}

// matches reports whether the fields of an object are selected. Its name and namespace are all that the API lets through to here.
func (s selector) matches(object metav1.Object) bool {
	return s.fields.Empty() || s.fields.Matches(fields.Set{
		metav1.ObjectNameField: object.GetName(), "metadata.namespace": object.GetNamespace(),
	})
}

// ownLabels are labels of pods that controllers choose by themselves. They may differ between a pod and its mirror.
var ownLabels = []string{
	appsv1.DefaultDeploymentUniqueLabelKey,
	appsv1.ControllerRevisionHashLabelKey,
	batchv1.ControllerUidLabel, batchv1.JobNameLabel, batchv1.JobCompletionIndexAnnotation,
	"controller-uid", "job-name",
}

// below returns options that select at least these pods in a cluster, and not many others: an autoscaler's request must not make every
// cluster list a whole namespace.
func (s selector) below() metav1.ListOptions {
	requirements, selectable := s.labels.Requirements()
	if !selectable {
		return metav1.ListOptions{} // never asked: nothing is selected above either
	}
	requirements = slices.DeleteFunc(slices.Clone(requirements), func(r labels.Requirement) bool {
		return slices.Contains(ownLabels, r.Key())
	})
	return metav1.ListOptions{
		LabelSelector: labels.NewSelector().Add(requirements...).String(),
		FieldSelector: s.fields.String(),
	}
}

// sortPods puts metrics in the order in which an API server lists pods.
func sortPods(pods []v1beta1.PodMetrics) {
	slices.SortFunc(pods, func(a, b v1beta1.PodMetrics) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
