package physical

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
)

// Watcher watches a cluster, within the budget that this has of our memory.
type Watcher struct {
	Client kubernetes.Interface
	Budget *bounds.Budget
}

// Watch is an informer behind a gate of its own.
type Watch struct {
	Informer cache.SharedIndexInformer
	factory  informers.SharedInformerFactory
	gate     *bounds.Gate
}

// Watch returns a watch of what a selector selects of a resource. It is to be started.
func (w Watcher) Watch(resource schema.GroupVersionResource, selector string, trim cache.TransformFunc) (*Watch, error) {
	gate := w.Budget.Gate()
	factory := informers.NewSharedInformerFactoryWithOptions(w.Client, 0, informers.WithTransform(gate.Transform(trim)),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = selector
			gate.Tweak(o)
		}))
	generic, err := factory.ForResource(resource)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	return &Watch{Informer: generic.Informer(), factory: factory, gate: gate}, gate.Watch(generic.Informer())
}

// Start begins to watch, until ctx ends.
func (w *Watch) Start(ctx context.Context) { w.factory.StartWithContext(ctx) }

// Stop returns when nothing is watched any more, after the context of Start has ended, and gives back what the watch had of the budget.
func (w *Watch) Stop() {
	w.factory.Shutdown()
	w.gate.Close()
}

// StartTogether starts watches, and returns when each has shown what there is.
func StartTogether(ctx context.Context, together []*Watch) error {
	for _, w := range together {
		w.Start(ctx)
	}
	for _, w := range together {
		for kind, ok := range w.factory.WaitForCacheSync(ctx.Done()) {
			if !ok {
				return fmt.Errorf("list %v: %w", kind, context.Cause(ctx))
			}
		}
	}
	return nil
}

// LogWatchError keeps the ordinary end of a watch out of the log; that a cluster is silent is told by its Ready condition.
func LogWatchError(ctx context.Context, _ *cache.Reflector, err error) {
	klog.FromContext(ctx).V(2).Info("Watch interrupted", "err", err)
}
