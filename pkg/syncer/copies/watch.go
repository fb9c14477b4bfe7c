package copies

import (
	"context"
	"fmt"
	"slices"
	"sync"

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

// watch is the watch of one kind in the cluster: of what carries our label.
type watch struct {
	version  string
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc

	mu sync.Mutex
	// refusal is why the cluster does not let us list, "" if it has not said so.
	refusal string
}

func (w *watch) get(key Key) *unstructured.Unstructured {
	obj, exists, err := w.informer.GetIndexer().GetByKey(key.Namespace + "/" + key.Name)
	if err != nil || !exists {
		return nil
	}
	return obj.(*unstructured.Unstructured)
}

// keys returns what the watch shows of its kind.
func (w *watch) keys(resource schema.GroupResource) []Key {
	var out []Key
	for _, name := range w.informer.GetIndexer().ListKeys() {
		if namespace, name, err := cache.SplitMetaNamespaceKey(name); err == nil {
			out = append(out, Key{resource, namespace, name})
		}
	}
	return out
}

func (w *watch) refused() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal
}

// watch returns the watch of a kind in the version that the cluster is sent, once it has shown everything. Until then, or where there is
// none, it returns why if that is known and does not pass.
func (l *Loop) watch(key Key, k Kind) (_ *watch, reason string) {
	version, served := l.versionOf(k)
	if !served {
		l.unwatch(key.Resource)
		return nil, fmt.Sprintf("it does not serve %s in a version that the logical cluster serves (%v)", k.Resource, k.Versions)
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
func (l *Loop) begin(resource schema.GroupResource, k Kind, version string) *watch {
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
			l.lookAtAll()
		}
		return nil
	})
	return w
}

// watchErrorHandler remembers why the cluster does not let us see what it has of a kind.
func (l *Loop) watchErrorHandler(w *watch, resource schema.GroupResource, k Kind) cache.WatchErrorHandlerWithContext {
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
			l.lookAtAll()
		}
	}
}

// liveHandler looks again at a projection that was changed below, by whomever, and reports what it says of itself.
func (l *Loop) liveHandler(resource schema.GroupResource) cache.ResourceEventHandler {
	keyOf := func(obj any) (Key, bool) {
		name, err := cache.DeletionHandlingObjectToName(obj)
		return Key{resource, name.Namespace, name.Name}, err == nil
	}
	look := func(obj any) {
		if key, ok := keyOf(obj); ok {
			l.queue.Add(key)
			l.Above.Changed(key, false)
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
				l.Above.Changed(key, true) // nothing follows that it could be told with, and whoever deletes waits for it
			}
		},
	}
}

func (l *Loop) isWatched(resource schema.GroupResource) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watches[resource] != nil
}

// unwatch ends the watch of a kind.
func (l *Loop) unwatch(resource schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.watches[resource]; w != nil {
		w.cancel()
		delete(l.watches, resource)
	}
}

// unwatchUnused ends the watch of a kind of which the cluster has nothing and is to have nothing.
func (l *Loop) unwatchUnused(key Key) {
	if slices.ContainsFunc(l.Above.Concerns(l.cluster), func(other Key) bool { return other.Resource == key.Resource }) {
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
