package watched

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// DefinitionHandler watches the objects of every kind that is defined, as long as it is. Each time that a definition was taken into account it
// calls defined. Of a kind that is gone it tells undefine, which is to call Undefine.
func (r *Kinds) DefinitionHandler(ctx context.Context, group *errgroup.Group, defined func(), undefine func(schema.GroupResource)) cache.ResourceEventHandler {
	set := func(obj any) {
		crd := obj.(*apiextensionsv1.CustomResourceDefinition)
		k, served := copies.KindOf(crd)
		if !served {
			undefine(schema.ParseGroupResource(crd.Name))
			return
		}
		if err := r.Define(ctx, group, k, crd); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot watch a custom kind", "kind", k.Resource)
		}
		defined()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				undefine(schema.ParseGroupResource(name.Name)) // by which a definition is always named
			}
		},
	}
}
