// Package compare tells what applying manifests would change, by having the server try it without keeping anything.
package compare

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Trier has the logical cluster try what a release would apply, with the rights of whoever asks, and keeps nothing.
type Trier struct {
	Client dynamic.Interface
	Mapper meta.RESTMapper
	// Namespace is where manifests go that name none.
	Namespace string
}

// Live returns the object that there is under a manifest's name, nil if there is none.
func (t *Trier) Live(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	objects, err := t.objects(manifest)
	if err != nil {
		return nil, err
	}
	live, err := objects.Get(ctx, manifest.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Title(manifest), err)
	}
	return live, nil
}

// Applied returns what would be there if a manifest were applied: with defaults, and with what admission changes.
func (t *Trier) Applied(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	objects, err := t.objects(manifest)
	if err != nil {
		return nil, err
	}
	if t.scoped(manifest) {
		manifest = manifest.DeepCopy()
		manifest.SetNamespace("") // it may be of a kind that nobody knew when it was rendered
	}
	applied, err := objects.Apply(ctx, manifest.GetName(), manifest, metav1.ApplyOptions{
		DryRun: []string{metav1.DryRunAll}, Force: true, FieldManager: v1alpha1.FieldManager,
	})
	if err != nil {
		return nil, fmt.Errorf("try to apply %s: %w", Title(manifest), err)
	}
	return applied, nil
}

// scoped reports whether the kind of a manifest is in no namespace.
func (t *Trier) scoped(manifest *unstructured.Unstructured) bool {
	gvk := manifest.GroupVersionKind()
	mapping, err := t.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}

// objects are those of the manifest's kind, in its namespace if the kind has any.
func (t *Trier) objects(manifest *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := manifest.GroupVersionKind()
	mapping, err := t.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", Title(manifest), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return t.Client.Resource(mapping.Resource), nil
	}
	if in := manifest.GetNamespace(); in != "" && in != t.Namespace {
		return nil, fmt.Errorf("%s is for namespace %q, and an application has objects in its own alone, %q", Title(manifest), in, t.Namespace)
	}
	return t.Client.Resource(mapping.Resource).Namespace(t.Namespace), nil
}

// Title names an object by kind and name.
func Title(object *unstructured.Unstructured) string {
	kind := object.GetKind()
	if group := object.GroupVersionKind().Group; group != "" && group != "apps" && group != "batch" {
		kind += "." + group
	}
	return kind + " " + object.GetName()
}
