package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// trimRevision keeps of a revision what tells which upstream template it carries out. The template itself is in the logical cluster.
func trimRevision(obj any) (any, error) {
	revision, ok := obj.(*appsv1.ControllerRevision)
	if !ok {
		return obj, nil
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: revision.Namespace, Name: revision.Name, UID: revision.UID, ResourceVersion: revision.ResourceVersion,
			OwnerReferences: revision.OwnerReferences,
			Labels: map[string]string{
				appsv1.ControllerRevisionHashLabelKey: revision.Labels[appsv1.ControllerRevisionHashLabelKey],
			},
			Annotations: map[string]string{v1alpha1.AnnotationTemplate: revision.Annotations[v1alpha1.AnnotationTemplate]},
		},
	}, nil
}

// revisionsOf returns the revisions that a StatefulSet or DaemonSet has below.
func (b *below) revisionsOf(owner projection.Object, kind projection.Kind) []*appsv1.ControllerRevision {
	found, _ := b.revisions.GetIndexer().ByIndex(byOwner, owner.GetNamespace()+"/"+kind.GVK.Kind+"/"+owner.GetName())
	out := make([]*appsv1.ControllerRevision, 0, len(found))
	for _, obj := range found {
		if revision := obj.(*appsv1.ControllerRevision); metav1.IsControlledBy(revision, owner) {
			out = append(out, revision)
		}
	}
	return out
}

// templatesOf returns the hashes of the upstream templates that the revisions of an object below carry out, by their names.
func (b *below) templatesOf(live projection.Object, kind projection.Kind) map[string]string {
	out := map[string]string{}
	for _, revision := range b.revisionsOf(live, kind) {
		if hash := revision.Annotations[v1alpha1.AnnotationTemplate]; hash != "" {
			out[revision.Name] = hash
		}
	}
	return out
}

// revisionOf returns the revision below that a pod says it carries out, or nil if that is not known (yet). A StatefulSet labels its pods
// with the name of the revision, a DaemonSet with its hash.
func (b *below) revisionOf(pod *corev1.Pod, owner projection.Object, kind projection.Kind) *appsv1.ControllerRevision {
	label := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	if label == "" {
		return nil
	}
	for _, revision := range b.revisionsOf(owner, kind) {
		if revision.Name == label || revision.Labels[appsv1.ControllerRevisionHashLabelKey] == label {
			return revision
		}
	}
	return nil
}

// revisionLabels are the labels by which the mirror of a pod names the revision that it carries out: that of the logical cluster. None as
// long as that is not known, which the handler of revisions makes up for.
func (s *Syncer) revisionLabels(pod *corev1.Pod, own *ownership) map[string]string {
	live := s.below.get(own.above.Key())
	if live == nil {
		return nil
	}
	revision := s.below.revisionOf(pod, live, own.above.Kind)
	if revision == nil || revision.Annotations[v1alpha1.AnnotationTemplate] == "" {
		return nil
	}
	value := revision.Annotations[v1alpha1.AnnotationTemplate]
	if revision.Name == pod.Labels[appsv1.ControllerRevisionHashLabelKey] {
		value = summary.RevisionName(own.above.GetName(), value)
	}
	return map[string]string{appsv1.ControllerRevisionHashLabelKey: value}
}

// TemplatesInUse returns the hashes of the upstream templates that the pods of an object carry out in the cluster.
func (s *Syncer) TemplatesInUse(key identity.Key) map[string]bool {
	kind, _ := projection.ForResource(key.Resource)
	live := s.below.get(key)
	if live == nil {
		return nil
	}
	out := map[string]bool{}
	for _, pod := range s.below.podsOf(kind.GVK.Kind, key.Namespace, key.Name) {
		if revision := s.below.revisionOf(pod, live, kind); revision != nil {
			out[revision.Annotations[v1alpha1.AnnotationTemplate]] = true
		}
	}
	return out
}

// revisionHandler looks again at what a new revision explains: the counters of its owner, and the mirrors of pods that name it.
func (s *Syncer) revisionHandler() cache.ResourceEventHandler {
	look := func(revision *appsv1.ControllerRevision) {
		ref := metav1.GetControllerOf(revision)
		if ref == nil || !s.below.ours(revision.Namespace) {
			return
		}
		kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if !ok {
			return
		}
		key := identity.Key{Resource: kind.Resource, Namespace: revision.Namespace, Name: ref.Name}
		if !s.holds(key) {
			return
		}
		s.Changed(key, false)
		for _, pod := range s.below.podsOf(ref.Kind, revision.Namespace, ref.Name) {
			s.enqueuePod(pod)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { look(obj.(*appsv1.ControllerRevision)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*appsv1.ControllerRevision), obj.(*appsv1.ControllerRevision)
			if before.Annotations[v1alpha1.AnnotationTemplate] != after.Annotations[v1alpha1.AnnotationTemplate] {
				look(after)
			}
		},
	}
}
