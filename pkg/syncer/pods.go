package syncer

import (
	"context"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// pendingDelay is how long a pod that has just been made may stay unmirrored. Most are bound and started meanwhile, and then two or
// three states cost one write.
const pendingDelay = 150 * time.Millisecond

// enqueuePod has a pod looked at: at once, unless it only just begins.
func (s *Syncer) enqueuePod(pod *corev1.Pod) {
	name := cache.MetaObjectToName(pod)
	if pod.DeletionTimestamp == nil && beginning(pod) {
		s.podQueue.AddAfter(name, pendingDelay)
		return
	}
	s.podQueue.Add(name)
}

// beginning reports whether a pod is expected to move on by itself in a moment. A pod that could not be scheduled is not.
func beginning(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodPending {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return false
		}
	}
	return true
}

// enqueuePodsOf has the pods of a workload looked at again.
func (s *Syncer) enqueuePodsOf(kind projection.Kind, namespace, name string) {
	if kind.Resource != deploymentResource {
		for _, pod := range s.below.PodsOf(kind.GVK.Kind, namespace, name) {
			s.enqueuePod(pod)
		}
		return
	}
	for _, rs := range s.below.ReplicaSetsOf(namespace, name) {
		for _, pod := range s.below.PodsOf("ReplicaSet", namespace, rs.Name) {
			s.enqueuePod(pod)
		}
	}
}

// syncPod brings the mirror of one pod in line with the pod.
func (s *Syncer) syncPod(ctx context.Context, name cache.ObjectName) error {
	shown, err := s.mirrorNamed(name)
	if err != nil {
		return err
	}
	if s.givenUp() {
		return nil // whoever removes the cluster removes its mirrors
	}
	pod := s.below.Pod(name)
	if shown != nil && identity.ShownFrom(shown) == "" {
		return s.syncOwnPod(ctx, shown, pod)
	}
	if shown != nil && identity.ShownFrom(shown) != s.cluster {
		if pod == nil || s.mirrorOwner(pod) == nil {
			return nil // that of another cluster; ours has none
		}
		return s.makeAnew(ctx, pod, shown) // two clusters chose the same name
	}
	if shown != nil && (pod == nil || pod.UID != shown.UID) {
		return s.deleteMirror(ctx, shown, 0)
	}
	if pod == nil {
		return nil
	}
	if projection.Orphaned(pod) && pod.DeletionTimestamp == nil && shown != nil {
		if template, ok := s.Upstream.Released(shown); ok {
			return s.takeOver(ctx, pod, shown, template)
		}
	}
	if own := s.ownerOf(pod); own != nil && s.lost(own.above, identity.DecisionOf(own.above), s.cluster) {
		// It may run, but nobody hears of it, and its workload runs elsewhere, perhaps under the same names.
		if shown == nil {
			return nil
		}
		return s.deleteMirror(ctx, shown, 0)
	}
	owner := s.mirrorOwner(pod)
	switch {
	case owner != nil:
		want, err := s.showable(pod, *owner, shown)
		if err != nil {
			return s.refuse(pod, err)
		}
		return s.writeMirror(ctx, want, shown)
	case shown == nil && projection.Orphaned(pod):
		return s.refuse(pod, errNoRecord)
	case shown == nil:
		return nil // the owner's shown comes first; its watch wakes us
	case pod.DeletionTimestamp != nil:
		// What it belonged to may be gone before it is, above as below.
		want, err := s.showable(pod, mirrorOwner{references: shown.OwnerReferences, labels: mirror.OwnerLabels(shown)}, shown)
		if err != nil {
			return s.refuse(pod, err)
		}
		return s.writeMirror(ctx, want, shown)
	case metav1.GetControllerOf(pod) == nil:
		return s.letGoOf(ctx, pod, shown)
	case s.ownerOf(pod) == nil:
		if gone, err := s.controllerGone(ctx, pod); gone || err != nil {
			return err // the garbage collector of the cluster is about to decide about it
		}
		return s.deleteMirror(ctx, shown, 0) // no longer a pod of ours
	}
	return nil
}

// controllerGone reports whether what controls an object below, or what controls that, is not there any more. The cluster is asked: what is
// not in our caches may only be none of ours.
func (s *Syncer) controllerGone(ctx context.Context, of metav1.Object) (bool, error) {
	ref := metav1.GetControllerOf(of)
	if ref == nil {
		return false, nil
	}
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !ok {
		return false, nil
	}
	client, err := typed.For(s.client, kind.Resource, of.GetNamespace())
	if err != nil {
		return false, err
	}
	list, err := client.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()})
	if err != nil {
		return false, err
	}
	var controller metav1.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if found, err := meta.Accessor(item); err == nil && found.GetUID() == ref.UID {
			controller = found
		}
		return nil
	})
	if controller == nil {
		return true, nil
	}
	return s.controllerGone(ctx, controller)
}

// mirrorNamed returns a mirror as the watch or our own last write shows it, or nil.
func (s *Syncer) mirrorNamed(name cache.ObjectName) (*corev1.Pod, error) {
	obj, exists, err := s.mirrors.GetByKey(name.String())
	if err != nil || !exists {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}

func (s *Syncer) writeMirror(ctx context.Context, want, have *corev1.Pod) error {
	pods := s.above.CoreV1().Pods(want.Namespace)
	deleting := want.DeletionTimestamp
	grace := ptr.Deref(want.DeletionGracePeriodSeconds, 0)
	want.DeletionTimestamp, want.DeletionGracePeriodSeconds = nil, nil
	if deleting != nil && want.Generation > 1 && (have == nil || have.DeletionTimestamp == nil) {
		want.Generation-- // the deletion that follows counts
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, v1alpha1.AnnotationGeneration, strconv.FormatInt(want.Generation, 10))
	}
	if have == nil {
		if s.Upstream.NamespaceGoes(want.Namespace) {
			return nil
		}
		written, err := pods.Create(ctx, want, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return errNotYet
		}
		if err != nil {
			return err
		}
		s.mirrors.Mutation(written)
		have = written
	} else if !mirror.SamePod(want, have) {
		want.ResourceVersion = have.ResourceVersion
		written, err := pods.Update(ctx, want, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
		if err != nil {
			return err
		}
		s.mirrors.Mutation(written)
		have = written
	}
	if deleting != nil && have.DeletionTimestamp == nil {
		// An update cannot mark an object as being deleted; only a deletion with a grace period can.
		return s.deleteMirror(ctx, have, max(grace, 1))
	}
	return nil
}

func (s *Syncer) deleteMirror(ctx context.Context, mirror *corev1.Pod, grace int64) error {
	err := s.above.CoreV1().Pods(mirror.Namespace).Delete(ctx, mirror.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &grace,
		Preconditions:      metav1.NewUIDPreconditions(string(mirror.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	s.mirrors.OnDelete(mirror)
	return nil
}

// ownership is what a pod below belongs to.
type ownership struct {
	// above is the workload of the logical cluster.
	above identity.Workload
	// replicaSet is what stands between the pod and a Deployment; nil for every other kind.
	replicaSet *appsv1.ReplicaSet
}

// ownerOf returns what a pod below belongs to, or nil if that is nothing of ours.
func (s *Syncer) ownerOf(pod *corev1.Pod) *ownership {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return nil
	}
	if ref.Kind == "ReplicaSet" {
		if rs := s.below.ReplicaSet(pod.Namespace, ref.Name); rs != nil && rs.UID == ref.UID {
			if projected := s.below.DeploymentOf(rs); projected != nil {
				return s.owner(deploymentResource, projected, rs)
			}
			if projection.Orphaned(rs) {
				return s.orphanOwner(rs)
			}
		}
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind, ok := projection.ForGVK(gvk)
	if !ok || !kind.Workload {
		return nil
	}
	live := s.below.Get(identity.Key{Resource: kind.Resource, Namespace: pod.Namespace, Name: ref.Name})
	if live == nil || live.GetUID() != ref.UID {
		return nil
	}
	return s.owner(kind.Resource, live, nil)
}

// owner finds the workload above that a projection is of.
func (s *Syncer) owner(resource schema.GroupVersionResource, projected projection.Object, rs *appsv1.ReplicaSet) *ownership {
	kind, _ := projection.ForResource(resource)
	above := s.Upstream.Get(identity.KeyOf(kind, projected))
	if above == nil || !s.counts(kind, above, projected) {
		return nil
	}
	return &ownership{above: identity.Workload{Kind: kind, Object: above}, replicaSet: rs}
}

// mirrorOwner is what the mirror of a pod belongs to above.
type mirrorOwner struct {
	references []metav1.OwnerReference
	// labels are those by which the owner tells its pods apart.
	labels map[string]string
	// controller is the owner itself, and decider the workload that says where its pods run; both are empty for one that is gone.
	controller, decider identity.Workload
	// ending tells that the owner is being deleted.
	ending bool
}

// mirrorOwner returns what owns the mirror of a pod above, or nil while there is none.
func (s *Syncer) mirrorOwner(pod *corev1.Pod) *mirrorOwner {
	own := s.ownerOf(pod)
	if own == nil {
		return nil
	}
	if own.replicaSet == nil {
		return &mirrorOwner{
			labels: s.revisionLabels(pod, own), ending: own.above.GetDeletionTimestamp() != nil,
			references: []metav1.OwnerReference{*metav1.NewControllerRef(own.above, own.above.Kind.GVK)},
			controller: own.above, decider: own.above,
		}
	}
	rs, err := s.Upstream.ReplicaSets.ReplicaSets(pod.Namespace).Get(s.shownAs(own.replicaSet, own.above.GetName()))
	if err != nil || !metav1.IsControlledBy(rs, own.above) {
		return nil
	}
	kind, _ := projection.ForResource(replicaSetResource)
	out := &mirrorOwner{
		references: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		controller: identity.Workload{Kind: kind, Object: rs}, decider: own.above,
	}
	if hash := rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" { // none, if it was made by hand
		out.labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	}
	return out
}

// showable returns the mirror of a pod that has this owner; stored is the mirror as it is, or nil. The error says why there can be none: the
// API server would refuse it, see Guard.
func (s *Syncer) showable(pod *corev1.Pod, owner mirrorOwner, stored *corev1.Pod) (*corev1.Pod, error) {
	of := mirror.Owner{Object: &corev1.Pod{}, Template: &corev1.PodTemplateSpec{}}
	if stored != nil {
		owner.references = mirror.OwnersOf(stored.OwnerReferences, owner.references, owner.ending)
		of.Revision = logical.RevisionLabel(stored)
	}
	out := mirror.ShowPod(pod, s.cluster, owner.references, owner.labels)
	out.Finalizers = slices.Clone(pod.Finalizers)
	if owner.controller.Object != nil {
		if stored == nil || !metav1.IsControlledBy(stored, owner.controller) {
			if err := s.Upstream.Guard(nil).MayShow(s.cluster, pod, owner.controller, owner.decider); err != nil {
				return nil, err
			}
		}
		of = s.Upstream.OwnerOf(owner.controller, owner.decider, s.cluster, logical.RevisionLabel(out), stored == nil)
		if stored == nil {
			of.Change = s.Upstream.Admitted(s.cluster, pod, owner.decider)
		}
	}
	of.Pod(out, stored)
	if of.Change != nil { // the API server looks at it, and does not store it
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationAdmitted, pod.Annotations[v1alpha1.AnnotationAdmitted])
	}
	return out, nil
}
