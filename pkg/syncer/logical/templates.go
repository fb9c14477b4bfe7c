package logical

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// templatesKept bounds how many templates of revisions are kept decoded.
const templatesKept = 1024

// revisions are the ControllerRevisions of the logical cluster. They keep the templates that users wrote, whatever clusters make of them.
type revisions struct {
	get func(namespace, name string) (*appsv1.ControllerRevision, error)
	// decoded are templates by the UIDs of their revisions, whose data never changes.
	decoded *lru.Cache
}

// of returns the revision above that the label of a pod names: by its name, as with a StatefulSet, or by its hash, as with a DaemonSet. It is
// nil if there is none, or none of that owner.
func (r revisions) of(owner projection.Object, label string) *appsv1.ControllerRevision {
	if label == "" || r.get == nil {
		return nil
	}
	for _, name := range []string{label, summary.RevisionName(owner.GetName(), label)} {
		if found, err := r.get(owner.GetNamespace(), name); err == nil && metav1.IsControlledBy(found, owner) {
			return found
		}
	}
	return nil
}

// template returns the template that a revision keeps, or nil if it keeps none.
func (r revisions) template(of *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	if known, ok := r.decoded.Get(of.UID); ok {
		return known.(*corev1.PodTemplateSpec)
	}
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(of.Data.Raw, &data) != nil || data.Spec.Template == nil {
		return nil
	}
	if of.UID != types.UID("") {
		r.decoded.Add(of.UID, data.Spec.Template)
	}
	return data.Spec.Template
}

// revisioned returns the template of a controller that the label of one of its pods in a cluster names, and the label's value if it names one that is
// known and that the cluster was given: else the template is the one in use there, and the value "".
func (c *Cluster) revisioned(w identity.Workload, cluster, label string) (template *corev1.PodTemplateSpec, revision string) {
	current := w.Kind.Demand(c.Versions.AsHeld(w, cluster)).Template
	kind, ok := summary.ForResource(w.Kind.Resource)
	if !ok || !kind.KeepsHistory() || label == "" {
		return current, ""
	}
	if found := c.revisions.of(w.Object, label); found != nil {
		if template := c.revisions.template(found); template != nil && c.Versions.given(w, cluster, template) {
			return template, label
		}
		return current, label
	}
	// That of the template in use may not have been written yet.
	if hash := projection.TemplateHash(current); label == hash || label == summary.RevisionName(w.GetName(), hash) {
		return current, label
	}
	return current, ""
}

// OwnerOf returns what is known of the pods that a controller above has in a cluster. Label is the one by which the pod names its revision
// above. For a pod that has a mirror, the template does not matter. Overrides that cannot be made change nothing: the projection tells of them.
func (c *Cluster) OwnerOf(controller, decider identity.Workload, cluster, label string, isNew bool) mirror.Owner {
	template, revision := c.revisioned(controller, cluster, label)
	out := mirror.Owner{Object: controller.Object, Template: template, Revision: revision}
	if !isNew || template == nil || c.Overrides == nil {
		return out
	}
	overrides, err := c.Overrides(decider.Kind, decider.Object, cluster)
	if err != nil {
		return out
	}
	if overridden, err := decider.Kind.Overridden(decider.Object, template, overrides); err == nil {
		out.Template = overridden
	}
	return out
}

func RevisionLabel(pod metav1.Object) string {
	return pod.GetLabels()[appsv1.ControllerRevisionHashLabelKey]
}

func SubjectOf(cluster string, pod metav1.Object, decider identity.Workload) podhooks.Subject {
	return podhooks.Subject{Cluster: cluster, Namespace: pod.GetNamespace(), Name: pod.GetName(), Workload: decider.GetUID()}
}

// Admitted returns what webhooks of the logical cluster have changed of a pod that its cluster has made, nil for nothing. The pod, or its mirror,
// proves it.
func (c *Cluster) Admitted(cluster string, pod metav1.Object, decider identity.Workload) []byte {
	sealed, ok := pod.GetAnnotations()[v1alpha1.AnnotationAdmitted]
	if !ok || decider.Object == nil {
		return nil
	}
	return c.PodKey.Open(SubjectOf(cluster, pod, decider), sealed)
}
