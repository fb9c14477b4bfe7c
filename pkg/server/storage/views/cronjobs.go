package views

import (
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/batch"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// cronJobs stay in the logical cluster, which makes Jobs by them. One that is written through the view of a cluster makes Jobs that are pinned there.
var cronJobs = projection.Kind{
	GVK: batchv1.SchemeGroupVersion.WithKind("CronJob"), Resource: batchv1.SchemeGroupVersion.WithResource("cronjobs"), Namespaced: true,
	New: func() projection.Object { return &batchv1.CronJob{} },
}

// kinds are those that may be seen and written through views.
func kinds() []projection.Kind { return append(projection.Kinds(), cronJobs) }

// pinJobs has the Jobs that a CronJob makes run in the cluster. It refuses one whose writer pins them elsewhere.
func (l looker) pinJobs(obj metav1.Object) error {
	cron, is := obj.(*batch.CronJob)
	if !is {
		return nil
	}
	template := &cron.Spec.JobTemplate.ObjectMeta
	if pin, pinned := template.Annotations[v1alpha1.AnnotationClusters]; pinned && strings.TrimSpace(pin) != l.cluster {
		return apierrors.NewInvalid(l.kind.GVK.GroupKind(), obj.GetName(), field.ErrorList{field.Invalid(
			field.NewPath("spec", "jobTemplate", "metadata", "annotations").Key(v1alpha1.AnnotationClusters), pin,
			fmt.Sprintf("the Jobs of what is written through the view of cluster %q run there: leave the annotation out", l.cluster))})
	}
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationClusters] = l.cluster
	template.Annotations = annotations
	return nil
}
