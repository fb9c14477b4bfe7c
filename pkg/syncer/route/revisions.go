package route

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// ByHiddenManifest indexes revisions and their chunks by the Secrets that hold manifests of them.
const ByHiddenManifest = "manifold.dev/hidden-manifest"

// IndexHiddenManifests is for the informer of revisions.
func IndexHiddenManifests(obj any) ([]string, error) {
	revision, ok := obj.(*delivery.ApplicationRevision)
	if !ok {
		return nil, nil
	}
	var out []string
	for i := range revision.Spec.Objects {
		if ref := revision.Spec.Objects[i].SecretKeyRef; ref != nil {
			out = append(out, cache.ObjectName{Namespace: revision.Namespace, Name: ref.Name}.String())
		}
	}
	return out, nil
}

// Revisions has what is to be held at a revision looked at when the revision comes, or a chunk of it, and when it goes.
func (r *Router) Revisions() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { r.revision(obj) },
		// They never change, and one that is made anew between two looks comes as an update.
		UpdateFunc: func(old, obj any) {
			if old.(*delivery.ApplicationRevision).UID != obj.(*delivery.ApplicationRevision).UID {
				r.revision(obj)
			}
		},
		DeleteFunc: func(obj any) { r.revision(caches.Last(obj)) },
	}
}

// HiddenManifests does the same for Secrets that hold manifests of revisions.
func (r *Router) HiddenManifests(revisions cache.Indexer) cache.ResourceEventHandler {
	look := func(obj any) {
		secret, ok := caches.Last(obj).(*corev1.Secret)
		if !ok {
			return
		}
		name := cache.MetaObjectToName(secret).String()
		for _, revision := range caches.Indexed[*delivery.ApplicationRevision](revisions, ByHiddenManifest, name) {
			r.revision(revision)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		UpdateFunc: func(old, obj any) {
			if !equality.Semantic.DeepEqual(old.(*corev1.Secret).Data, obj.(*corev1.Secret).Data) {
				look(obj)
			}
		},
		DeleteFunc: look,
	}
}

// revision routes what names a revision, or the one that a chunk is of.
func (r *Router) revision(obj any) {
	revision, ok := obj.(*delivery.ApplicationRevision)
	if !ok {
		return
	}
	name := cache.ObjectName{Namespace: revision.Namespace, Name: revision.Name}
	if revision.IsChunk() {
		name.Name = revision.Spec.ChunkOf
	}
	for _, kind := range projection.Kinds() {
		for _, held := range r.Demand.Versions.Naming(kind.Resource, name) {
			r.Route(kind, nil, held)
		}
	}
}
