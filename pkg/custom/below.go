package custom

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// watch returns the watch of a kind in the version that the cluster is sent, once it has shown everything. Until then, or where there is
// none, it returns why if that is known and does not pass.
func (l *loop) watch(key Key, k kind) (_ *watch, reason string) {
	version, served := l.versionOf(k)
	if !served {
		l.unwatch(key.Resource)
		return nil, fmt.Sprintf("it does not serve %s in a version that the logical cluster serves (%v)", k.resource, k.versions)
	}
	l.mu.Lock()
	w := l.watches[key.Resource]
	l.mu.Unlock()
	if w != nil && w.version != version {
		l.unwatch(key.Resource)
		w = nil
	}
	if w == nil {
		w = l.begin(key.Resource, k, version)
	}
	if w.informer.HasSynced() {
		return w, ""
	}
	return nil, w.refused()
}

// begin starts the watch of a kind.
func (l *loop) begin(resource schema.GroupResource, k kind, version string) *watch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.watches[resource]; w != nil && w.version == version {
		return w // another worker was faster
	}
	ctx, cancel := context.WithCancel(l.ctx)
	gate := l.budget.Gate()
	w := &watch{version: version, cancel: cancel}
	w.informer = dynamicinformer.NewFilteredDynamicInformer(l.client, resource.WithVersion(version), metav1.NamespaceAll, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		func(o *metav1.ListOptions) {
			o.LabelSelector = v1alpha1.LabelLogicalCluster + "=" + l.target.LogicalCluster
			gate.Tweak(o)
		}).Informer()
	// The informer has not been started, so none of these can fail.
	_ = w.informer.SetTransform(gate.Transform(nil))
	_ = gate.Watch(w.informer)
	_ = w.informer.SetWatchErrorHandlerWithContext(l.watchErrorHandler(w, resource, k))
	_, _ = w.informer.AddEventHandler(l.liveHandler(resource))
	l.watches[resource] = w
	l.group.Go(func() error {
		defer gate.Close()
		w.informer.RunWithContext(ctx)
		return nil
	})
	l.group.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced) {
			l.enqueueEverything()
		}
		return nil
	})
	return w
}

// watchErrorHandler remembers why the cluster does not let us see what it has of a kind.
func (l *loop) watchErrorHandler(w *watch, resource schema.GroupResource, k kind) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).V(2).Info("Watch of a custom kind interrupted", "kind", resource, "err", err)
		var refusal string
		switch {
		case apierrors.IsForbidden(err):
			refusal = l.rightless(k)
		case apierrors.IsNotFound(err):
			refusal = fmt.Sprintf("it does not serve %s", resource)
		case writer.Passes(err), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			return
		default:
			refusal = err.Error()
		}
		w.mu.Lock()
		known := w.refusal == refusal
		w.refusal = refusal
		w.mu.Unlock()
		if !known {
			l.enqueueEverything()
		}
	}
}

// liveHandler looks again at a projection that was changed below, by whomever, and reports what it says of itself.
func (l *loop) liveHandler(resource schema.GroupResource) cache.ResourceEventHandler {
	keyOf := func(obj any) (Key, bool) {
		name, err := cache.DeletionHandlingObjectToName(obj)
		return Key{resource, name.Namespace, name.Name}, err == nil
	}
	look := func(obj any) {
		if key, ok := keyOf(obj); ok {
			l.queue.Add(key)
			l.changed(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		UpdateFunc: func(old, obj any) {
			if old.(*unstructured.Unstructured).GetResourceVersion() != obj.(*unstructured.Unstructured).GetResourceVersion() {
				look(obj)
			}
		},
		DeleteFunc: func(obj any) {
			if key, ok := keyOf(obj); ok {
				l.queue.Add(key)
				l.Controller.queue.Add(key) // nothing follows that it could be told with, and whoever deletes waits for it
			}
		},
	}
}

func (l *loop) isWatched(resource schema.GroupResource) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watches[resource] != nil
}

// unwatch ends the watch of a kind.
func (l *loop) unwatch(resource schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.watches[resource]; w != nil {
		w.cancel()
		delete(l.watches, resource)
	}
}

// unwatchUnused ends the watch of a kind of which the cluster has nothing and is to have nothing.
func (l *loop) unwatchUnused(key Key) {
	if slices.ContainsFunc(l.concerns(l.cluster), func(c concern) bool { return c.kind == key.Resource }) {
		return
	}
	l.mu.Lock()
	w := l.watches[key.Resource]
	used := w == nil || len(w.informer.GetIndexer().ListKeys()) > 0
	l.mu.Unlock()
	if !used {
		l.unwatch(key.Resource)
	}
}
