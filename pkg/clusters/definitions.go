package clusters

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// definitionsSettle is how long a changed definition of custom resources waits for others, and for its API to be served.
const definitionsSettle = time.Second

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// watchDefinitions has the served kinds read again when definitions of custom resources change. A cluster that does not let us watch them,
// as one that joined long ago, is read every now and then like any other.
func (l *live) watchDefinitions(ctx context.Context) {
	if l.connection.Metadata == nil {
		return
	}
	gate := l.connection.Budget.Gate()
	informer := metadatainformer.NewFilteredMetadataInformer(l.connection.Metadata, definitions, metav1.NamespaceAll, 0, cache.Indexers{},
		gate.Tweak).Informer()
	// The informer has not been started, so none of these can fail.
	_ = informer.SetTransform(gate.Transform(versionOnly))
	_ = gate.Watch(informer)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).V(2).Info("Watch of definitions interrupted", "err", err)
	})
	changed := make(chan struct{}, 1)
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				signal(changed)
			}
		},
		UpdateFunc: func(old, obj any) {
			if versionOf(old) != versionOf(obj) {
				signal(changed)
			}
		},
		DeleteFunc: func(any) { signal(changed) },
	})
	l.group.Go(func() error { informer.RunWithContext(ctx); return nil })
	l.group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
			pause(ctx, l.session.manager.Clock, definitionsSettle)
			signal(l.session.refresh)
		}
	})
}

func versionOf(obj any) string {
	if accessor, err := meta.Accessor(obj); err == nil {
		return accessor.GetResourceVersion()
	}
	return ""
}

// versionOnly keeps of an object what tells that it has changed.
func versionOnly(obj any) (any, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}, nil
}
