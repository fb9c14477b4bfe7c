package tree

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
)

var (
	applicationGVK   = v1alpha1.SchemeGroupVersion.WithKind("Application")
	releaseResource  = v1alpha1.SchemeGroupVersion.WithResource("releases")
	revisionResource = v1alpha1.SchemeGroupVersion.WithResource("applicationrevisions")
)

// release reads the release that an application tells of.
func (g gatherer) release(ctx context.Context, app *v1alpha1.Application, r *reading) error {
	if app.Status.Release == "" {
		return nil
	}
	found, err := g.dynamic.Resource(releaseResource).Namespace(app.Namespace).Get(ctx, app.Status.Release, metav1.GetOptions{})
	if err != nil {
		return err
	}
	release, err := into(found, &v1alpha1.Release{})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.release = release
	return nil
}

// customs lists the objects of an application that are of custom kinds: of those kinds that the revisions have which run, and of that of the route which
// is made. Of others nothing is asked, as there may be hundreds.
func (g gatherer) customs(ctx context.Context, app *v1alpha1.Application, r *reading) error {
	kinds := sets.New[schema.GroupVersionKind]()
	for _, name := range sets.List(revisionsOf(&app.Status)) {
		if err := g.kinds(ctx, app.Namespace, name, kinds); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if of := app.Spec.Traffic; of != nil && of.Makes() {
		kinds.Insert(traffic.Kinds[of.Method])
	}
	for _, k := range listed() {
		kinds.Delete(k.gvk)
	}
	for gvk := range kinds {
		mapping, err := g.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			continue // its definition is gone, and its objects with it
		}
		if err != nil {
			return fmt.Errorf("how %s is served: %w", gvk, err)
		}
		mine := metav1.ListOptions{LabelSelector: labels.Set{v1alpha1.LabelApplication: app.Name}.String()}
		if err := r.keep(mapping.Resource, g.each(ctx, mapping.Resource, app.Namespace, mine, r.other)); err != nil {
			return err
		}
	}
	return nil
}

// other adds an object of a kind that is not known here.
func (r *reading) other(item *unstructured.Unstructured) error {
	obj, err := typedOf(item)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.others = append(r.out.others, obj)
	return nil
}

// revisionsOf are the names of all revisions of which something may run.
func revisionsOf(status *v1alpha1.ApplicationStatus) sets.Set[string] {
	out := sets.New(status.LiveRevision, status.WantedRevision)
	for i := range status.Variants {
		out.Insert(status.Variants[i].Revision)
		for j := range status.Variants[i].Clusters {
			out.Insert(status.Variants[i].Clusters[j].Revision)
		}
	}
	return out.Delete("")
}

// kinds adds those of the manifests of a revision. Secrets are kept elsewhere, and are listed anyway.
func (g gatherer) kinds(ctx context.Context, namespace, name string, into sets.Set[schema.GroupVersionKind]) error {
	revision, err := g.revision(ctx, namespace, name)
	if err != nil {
		return err
	}
	parts := []*v1alpha1.ApplicationRevision{revision}
	for _, chunk := range revision.Spec.Chunks {
		part, err := g.revision(ctx, namespace, chunk.Name)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	for _, part := range parts {
		for i := range part.Spec.Objects {
			manifest := part.Spec.Objects[i].Manifest
			if manifest == nil {
				continue
			}
			var of metav1.TypeMeta
			if err := json.Unmarshal(manifest.Raw, &of); err != nil {
				return fmt.Errorf("read a manifest of revision %s: %w", part.Name, err)
			}
			into.Insert(of.GroupVersionKind())
		}
	}
	return nil
}

func (g gatherer) revision(ctx context.Context, namespace, name string) (*v1alpha1.ApplicationRevision, error) {
	found, err := g.dynamic.Resource(revisionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.ApplicationRevision{}
	content, err := found.MarshalJSON() // a manifest is read as the JSON that it is
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(content, out)
}
