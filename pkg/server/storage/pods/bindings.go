package pods

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"

	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// A binding writes its annotations to the pod past everything else that looks at pods. Those that Manifold alone writes it must not bring:
// they say where the pod is.

// bindingREST and legacyBindingREST bind pods of users' own, as the stock endpoints do.
type (
	bindingREST       struct{ *podstore.BindingREST }
	legacyBindingREST struct{ *podstore.LegacyBindingREST }
)

func changeBindings(storage map[string]rest.Storage) error {
	binding, err := builtin.Lookup[*podstore.BindingREST](storage, "pods/binding")
	if err != nil {
		return err
	}
	legacy, err := builtin.Lookup[*podstore.LegacyBindingREST](storage, "bindings")
	if err != nil {
		return err
	}
	storage["pods/binding"], storage["bindings"] = &bindingREST{binding}, &legacyBindingREST{legacy}
	return nil
}

// Create implements rest.NamedCreater.
func (r *bindingREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.BindingREST.Create(ctx, name, withoutManaged(ctx, obj), validate, options)
}

// Create implements rest.Creater.
func (r *legacyBindingREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.LegacyBindingREST.Create(ctx, withoutManaged(ctx, obj), validate, options)
}

func withoutManaged(ctx context.Context, obj runtime.Object) runtime.Object {
	if binding, ok := obj.(*api.Binding); ok {
		for _, key := range metadata.ManagedAnnotations {
			if _, set := binding.Annotations[key]; set {
				metadata.WarnManaged(ctx, key)
				metadata.SetAnnotation(binding, key, "")
			}
		}
	}
	return obj
}
