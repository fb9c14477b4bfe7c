package planning

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// AnnotationRevision is what the controller of Deployments gives one once that has a ReplicaSet.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// begins returns the template of the pods that a paused Deployment has, if this cluster has no ReplicaSet of it yet, else nil. A Deployment
// that is made paused makes no pods, so it is made as one that is not, by the template that runs: whoever pauses it wants no other pods,
// and yet as many as before, wherever they are.
func (c *Planner) begins(above, live projection.Object) *corev1.PodTemplateSpec {
	d, ok := above.(*appsv1.Deployment)
	if !ok || !d.Spec.Paused || live != nil && live.GetAnnotations()[AnnotationRevision] != "" {
		return nil
	}
	all, err := c.Demand.ReplicaSets.ReplicaSets(d.Namespace).List(labels.Everything())
	all = slices.DeleteFunc(slices.Clone(all), func(rs *appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(rs, d) })
	if err != nil || len(all) == 0 {
		return nil // it has never run
	}
	most := slices.MaxFunc(all, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(cmp.Compare(ptr.Deref(a.Spec.Replicas, 0), ptr.Deref(b.Spec.Replicas, 0)), cmp.Compare(revisionOf(a), revisionOf(b)))
	})
	out := most.Spec.Template.DeepCopy()
	delete(out.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return out
}

// revisionOf is the revision of a Deployment that a ReplicaSet carries out, 0 if it does not say.
func revisionOf(rs *appsv1.ReplicaSet) int64 {
	revision, _ := strconv.ParseInt(rs.Annotations[AnnotationRevision], 10, 64)
	return revision
}
