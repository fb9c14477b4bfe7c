package stock

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/lifecycle"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
	"k8s.io/client-go/tools/cache"
)

// heldInformers are the informers of another factory, whose handlers hear nothing until they are released. They are for the constructors
// of stock controllers, which add their handlers before they have set the listers that these use: in the stock program no informer runs
// by then. A handler that is held holds up nobody else, since each has its own buffer.
type heldInformers struct {
	informers.SharedInformerFactory
	// ctx ends handlers that were never released.
	ctx      context.Context
	released chan struct{}
}

func holdInformers(ctx context.Context, of informers.SharedInformerFactory) *heldInformers {
	return &heldInformers{SharedInformerFactory: of, ctx: ctx, released: make(chan struct{})}
}

func (f *heldInformers) release() { close(f.released) }

// InformerFor returns the other factory's informer. All typed informers come from here.
func (f *heldInformers) InformerFor(obj runtime.Object, new internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return heldInformer{f.SharedInformerFactory.InformerFor(obj, new), f}
}

// All groups of the interface follow: one that came from the other factory would not be held.

func (f *heldInformers) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Apps() apps.Interface { return apps.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Autoscaling() autoscaling.Interface {
	return autoscaling.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Batch() batch.Interface { return batch.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Certificates() certificates.Interface {
	return certificates.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Coordination() coordination.Interface {
	return coordination.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Core() core.Interface { return core.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Discovery() discovery.Interface {
	return discovery.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Events() events.Interface { return events.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Extensions() extensions.Interface {
	return extensions.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Flowcontrol() flowcontrol.Interface {
	return flowcontrol.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Lifecycle() lifecycle.Interface {
	return lifecycle.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Networking() networking.Interface {
	return networking.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Node() node.Interface { return node.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Policy() policy.Interface { return policy.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Rbac() rbac.Interface { return rbac.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Resource() resource.Interface {
	return resource.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Scheduling() scheduling.Interface {
	return scheduling.New(f, metav1.NamespaceAll, nil)
}

func (f *heldInformers) Storage() storage.Interface { return storage.New(f, metav1.NamespaceAll, nil) }

func (f *heldInformers) Storagemigration() storagemigration.Interface {
	return storagemigration.New(f, metav1.NamespaceAll, nil)
}

// heldInformer holds the handlers that are added to an informer.
type heldInformer struct {
	cache.SharedIndexInformer
	factory *heldInformers
}

func (i heldInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(heldHandler{h, i.factory})
}

func (i heldInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(heldHandler{h, i.factory}, resync)
}

func (i heldInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(heldHandler{h, i.factory}, options)
}

type heldHandler struct {
	handler cache.ResourceEventHandler
	factory *heldInformers
}

func (h heldHandler) OnAdd(obj any, isInInitialList bool) {
	if h.wait() {
		h.handler.OnAdd(obj, isInInitialList)
	}
}

func (h heldHandler) OnUpdate(old, obj any) {
	if h.wait() {
		h.handler.OnUpdate(old, obj)
	}
}

func (h heldHandler) OnDelete(obj any) {
	if h.wait() {
		h.handler.OnDelete(obj)
	}
}

// wait returns false when the handler will not be released any more.
func (h heldHandler) wait() bool {
	select {
	case <-h.factory.released:
		return true
	case <-h.factory.ctx.Done():
		return false
	}
}
