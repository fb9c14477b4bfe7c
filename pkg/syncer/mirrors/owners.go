package mirrors

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Owners finds what pods of a cluster belong to in the logical cluster.
type Owners struct{ Options }

// Ownership is what a pod below belongs to.
type Ownership struct {
	// above is the workload of the logical cluster.
	Above identity.Workload
	// ReplicaSet is what stands between the pod and a Deployment; nil for every other kind.
	ReplicaSet *appsv1.ReplicaSet
}

// Of returns what a pod below belongs to, or nil if that is nothing of ours.
func (o *Owners) Of(pod *corev1.Pod) *Ownership {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return nil
	}
	if ref.Kind == "ReplicaSet" {
		if rs := o.Below.ReplicaSet(pod.Namespace, ref.Name); rs != nil && rs.UID == ref.UID {
			if projected := o.Below.DeploymentOf(rs); projected != nil {
				return o.Projected(identity.Deployments, projected, rs)
			}
			if projection.Orphaned(rs) {
				return o.orphan(rs)
			}
		}
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind, ok := projection.ForGVK(gvk)
	if !ok || !kind.Workload {
		return nil
	}
	live := o.Below.Get(identity.Key{Resource: kind.Resource, Namespace: pod.Namespace, Name: ref.Name})
	if live == nil || live.GetUID() != ref.UID {
		return nil
	}
	return o.Projected(kind.Resource, live, nil)
}

// Projected finds the workload above that a projection is of.
func (o *Owners) Projected(resource schema.GroupVersionResource, projected projection.Object, rs *appsv1.ReplicaSet) *Ownership {
	kind, _ := projection.ForResource(resource)
	above := o.Above.Get(identity.KeyOf(kind, projected))
	if above == nil || !o.Counts(kind, above, projected) {
		return nil
	}
	return &Ownership{Above: identity.Workload{Kind: kind, Object: above}, ReplicaSet: rs}
}

// orphan returns what a pod below belongs to whose ReplicaSet outlives its Deployment.
func (o *Owners) orphan(rs *appsv1.ReplicaSet) *Ownership {
	kind, _ := projection.ForResource(identity.ReplicaSets)
	above := o.Above.Get(identity.KeyOf(kind, rs))
	if above == nil {
		return nil
	}
	return &Ownership{Above: identity.Workload{Kind: kind, Object: above}}
}

// Owner is what the mirror of a pod belongs to above.
type Owner struct {
	References []metav1.OwnerReference
	// Labels are those by which the owner tells its pods apart.
	Labels map[string]string
	// Controller is the owner itself, and Decider the workload that says where its pods run; both are empty for one that is gone.
	Controller, Decider identity.Workload
	// Ending reports whether the owner is being deleted.
	Ending bool
}

// OfMirror returns what owns the mirror of a pod above, or nil while there is none.
func (o *Owners) OfMirror(pod *corev1.Pod) *Owner {
	own := o.Of(pod)
	if own == nil {
		return nil
	}
	if own.ReplicaSet == nil {
		return &Owner{
			Labels: o.revisionLabels(pod, own), Ending: own.Above.GetDeletionTimestamp() != nil,
			References: []metav1.OwnerReference{*metav1.NewControllerRef(own.Above, own.Above.Kind.GVK)},
			Controller: own.Above, Decider: own.Above,
		}
	}
	rs, err := o.Above.ReplicaSets.ReplicaSets(pod.Namespace).Get(o.ShownAs(own.ReplicaSet, own.Above.GetName()))
	if err != nil || !metav1.IsControlledBy(rs, own.Above) {
		return nil
	}
	kind, _ := projection.ForResource(identity.ReplicaSets)
	out := &Owner{
		References: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		Controller: identity.Workload{Kind: kind, Object: rs}, Decider: own.Above,
	}
	if hash := rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" { // none, if it was made by hand
		out.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	}
	return out
}

// revisionLabels are the labels by which the mirror of a pod names the revision that it carries out: that of the logical cluster. None as
// long as that is not known, which the handler of revisions makes up for.
func (o *Owners) revisionLabels(pod *corev1.Pod, own *Ownership) map[string]string {
	live := o.Below.Get(own.Above.Key())
	if live == nil {
		return nil
	}
	revision := o.Below.RevisionOf(pod, live, own.Above.Kind)
	if revision == nil || revision.Annotations[v1alpha1.AnnotationTemplate] == "" {
		return nil
	}
	value := revision.Annotations[v1alpha1.AnnotationTemplate]
	if revision.Name == pod.Labels[appsv1.ControllerRevisionHashLabelKey] {
		value = summary.RevisionName(own.Above.GetName(), value)
	}
	return map[string]string{appsv1.ControllerRevisionHashLabelKey: value}
}

// ShownAs returns the name of the ReplicaSet above that shows one which belongs to a Deployment below, "" while the template that it
// carries out is not known. One that the Deployment has taken over is the projection of the one above of its name, though its annotations
// may be the Deployment's by now.
func (o *Owners) ShownAs(rs *appsv1.ReplicaSet, deployment string) string {
	if origin, owned := projection.OriginOf(rs); owned && origin.LogicalCluster == o.Above.LogicalCluster {
		return rs.Name
	}
	if hash := rs.Annotations[v1alpha1.AnnotationTemplate]; hash != "" {
		return summary.ReplicaSetName(deployment, hash)
	}
	return ""
}

// Adopter returns the workload above whose projection controls another projection, or nil.
func (o *Owners) Adopter(live projection.Object) *identity.Workload {
	ref := metav1.GetControllerOf(live)
	if ref == nil {
		return nil
	}
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !ok || !kind.Workload {
		return nil
	}
	controller := o.Below.Get(identity.Key{Resource: kind.Resource, Namespace: live.GetNamespace(), Name: ref.Name})
	if controller == nil || controller.GetUID() != ref.UID {
		return nil
	}
	if own := o.Projected(kind.Resource, controller, nil); own != nil {
		return &own.Above
	}
	return nil
}

// Maker returns the Deployment above whose controller made what has the name of a ReplicaSet in the cluster, or nil. The one above was its
// mirror, until somebody took off the reference to the Deployment.
func (o *Owners) Maker(key identity.Key) *identity.Workload {
	if key.Resource != identity.ReplicaSets {
		return nil
	}
	rs := o.Below.ReplicaSet(key.Namespace, key.Name)
	if rs == nil {
		return nil
	}
	projected := o.Below.DeploymentOf(rs)
	if projected == nil || o.ShownAs(rs, projected.Name) != key.Name {
		return nil
	}
	if own := o.Projected(identity.Deployments, projected, rs); own != nil {
		return &own.Above
	}
	return nil
}

// OfOwn are the owners of a pod that a user made: with the workload above whose controller has taken it over below, and without one
// whose controller has let it go.
func (o *Owners) OfOwn(above, live *corev1.Pod) []metav1.OwnerReference {
	var by *Owner
	if metav1.GetControllerOf(live) != nil {
		if by = o.OfMirror(live); by == nil {
			return above.OwnerReferences // a stranger's, or one that is not known yet
		}
	}
	if by == nil {
		by = &Owner{}
	}
	return mirror.OwnersOf(above.OwnerReferences, by.References, by.Ending)
}
