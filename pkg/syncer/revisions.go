package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
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

// TemplatesInUse returns the hashes of the upstream templates that the pods of an object carry out in the cluster.
func (s *Syncer) TemplatesInUse(key identity.Key) map[string]bool {
	kind, _ := projection.ForResource(key.Resource)
	live := s.below.Get(key)
	if live == nil {
		return nil
	}
	out := map[string]bool{}
	for _, pod := range s.below.PodsOf(kind.GVK.Kind, key.Namespace, key.Name) {
		if revision := s.below.RevisionOf(pod, live, kind); revision != nil {
			out[revision.Annotations[v1alpha1.AnnotationTemplate]] = true
		}
	}
	return out
}

// revisionHandler looks again at what a new revision explains: the counters of its owner, and the mirrors of pods that name it.
func (s *Syncer) revisionHandler() cache.ResourceEventHandler {
	look := func(revision *appsv1.ControllerRevision) {
		ref := metav1.GetControllerOf(revision)
		if ref == nil || !s.below.Ours(revision.Namespace) {
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
		for _, pod := range s.below.PodsOf(ref.Kind, revision.Namespace, ref.Name) {
			s.pods.LookAt(pod)
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
