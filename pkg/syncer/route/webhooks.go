package route

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

// Webhooks has namespaces looked at again when other webhooks are registered.
func (r *Router) Webhooks() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { r.webhooksChanged(nil, obj) },
		UpdateFunc: func(old, obj any) {
			if old.(metav1.Object).GetGeneration() != obj.(metav1.Object).GetGeneration() {
				r.webhooksChanged(old, obj)
			}
		},
		DeleteFunc: func(obj any) { r.webhooksChanged(caches.Last(obj), nil) },
	}
}

func (r *Router) webhooksChanged(configurations ...any) {
	for _, configuration := range configurations {
		for _, w := range podhooks.WebhooksOf(configuration) {
			if w.SeesNewPods() {
				relabelNamespaces(r.Clusters()...)
				return
			}
		}
	}
}

// relabelNamespaces has the namespaces that clusters hold looked at again.
func relabelNamespaces(in ...*Cluster) {
	for _, c := range in {
		for _, name := range c.Below.Namespaces.GetStore().ListKeys() {
			c.Queue.Add(identity.Key{Resource: identity.Namespaces, Name: name})
		}
	}
}
