package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/governed"
	"github.com/manifold-dev/manifold/pkg/delivery/manifests"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// ErrSelector says that a selector can select nothing: of a kind that there is not, or because nothing fits.
var ErrSelector = errors.New("nothing can be selected")

// Selector reads objects that users have applied, out of the caches of the logical cluster.
type Selector struct {
	kinds []selected
}

// selected is a kind and the cache of its objects.
type selected struct {
	contained.Kind
	informer cache.SharedIndexInformer
}

// NewSelector registers with the informers of all kinds that can be selected, which the caller starts afterwards.
func NewSelector(kube informers.SharedInformerFactory) (*Selector, error) {
	out := &Selector{}
	for _, kind := range contained.Kinds() {
		if kind.Delivered < projection.Selectable {
			continue
		}
		generic, err := kube.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		out.kinds = append(out.kinds, selected{kind, generic.Informer()})
	}
	return out, nil
}

// Informers are those of all kinds that can be selected.
func (s *Selector) Informers() (out []cache.SharedIndexInformer) {
	for _, kind := range s.kinds {
		out = append(out, kind.informer)
	}
	return out
}

// Read implements Source.
func (s *Selector) Read(_ context.Context, app *v1alpha1.Application) (*Found, error) {
	of := app.Spec.Source.Selector
	selector, err := metav1.LabelSelectorAsSelector(&of.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("%w: spec.source.selector: %w", ErrSelector, err)
	}
	kinds, err := s.of(of.Kinds)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, kind := range kinds {
		if err := kind.read(app, selector, files); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: spec.source.selector: no object of namespace %s has the labels %s", ErrSelector, app.Namespace, selector)
	}
	return plain(files), nil
}

// of are the kinds of these names.
func (s *Selector) of(names []string) ([]selected, error) {
	var out []selected
	if len(names) == 0 {
		for _, kind := range s.kinds {
			if kind.Delivered >= projection.Selected {
				out = append(out, kind)
			}
		}
		return out, nil
	}
	for i, name := range names {
		found := false
		for _, kind := range s.kinds {
			if governed.Named(kind.Kind, name) {
				out, found = append(out, kind), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: spec.source.selector.kinds[%d]: %s is not a kind that can be selected; %s are", ErrSelector, i, name, s)
		}
	}
	return out, nil
}

// String lists the kinds.
func (s *Selector) String() string {
	var out []string
	for _, kind := range s.kinds {
		out = append(out, kind.GVK.Kind)
	}
	return strings.Join(out, ", ")
}

// read puts the manifests of the objects that are selected into files.
func (k selected) read(app *v1alpha1.Application, selector labels.Selector, files map[string][]byte) error {
	var failed error
	err := cache.ListAllByNamespace(k.informer.GetIndexer(), app.Namespace, selector, func(obj any) {
		if object, ok := obj.(metav1.Object); !ok || !governed.Counts(object) {
			return
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			failed = fmt.Errorf("read %s: %w", k.GVK.Kind, err)
			return
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(k.GVK)
		text, err := manifests.FromLive(object).MarshalJSON()
		if err != nil {
			failed = fmt.Errorf("write %s %s: %w", k.GVK.Kind, object.GetName(), err)
			return
		}
		files[k.GVK.Kind+" "+object.GetName()] = text
	})
	return errors.Join(err, failed)
}
