package physical

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// RevisionsOf returns the revisions that a StatefulSet or DaemonSet has below.
func (c *Cluster) RevisionsOf(owner projection.Object, kind projection.Kind) []*appsv1.ControllerRevision {
	found, _ := c.Revisions.GetIndexer().ByIndex(byOwner, owner.GetNamespace()+"/"+kind.GVK.Kind+"/"+owner.GetName())
	out := make([]*appsv1.ControllerRevision, 0, len(found))
	for _, obj := range found {
		if revision := obj.(*appsv1.ControllerRevision); metav1.IsControlledBy(revision, owner) {
			out = append(out, revision)
		}
	}
	return out
}

// TemplatesOf returns the hashes of the upstream templates that the revisions of an object below carry out, by their names.
func (c *Cluster) TemplatesOf(live projection.Object, kind projection.Kind) map[string]string {
	out := map[string]string{}
	for _, revision := range c.RevisionsOf(live, kind) {
		if hash := revision.Annotations[v1alpha1.AnnotationTemplate]; hash != "" {
			out[revision.Name] = hash
		}
	}
	return out
}

// RevisionOf returns the revision below that a pod says it carries out, or nil if that is not known (yet). A StatefulSet labels its pods
// with the name of the revision, a DaemonSet with its hash.
func (c *Cluster) RevisionOf(pod *corev1.Pod, owner projection.Object, kind projection.Kind) *appsv1.ControllerRevision {
	label := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	if label == "" {
		return nil
	}
	for _, revision := range c.RevisionsOf(owner, kind) {
		if revision.Name == label || revision.Labels[appsv1.ControllerRevisionHashLabelKey] == label {
			return revision
		}
	}
	return nil
}
