package stock

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// metadataInformers are the informers that the garbage collector, the quota controller and the controller of custom resources share. One
// ends when all of them have let go of it, as they do when its kind is gone; the stock factory's would ask for that kind for ever.
//
// ForResource takes a lease. Its holder gives it back when the Run of the informer's controller returns: the stock controllers call that
// until they have no use for a kind any more.
type metadataInformers struct {
	client metadata.Interface

	mu sync.Mutex
	// ctx is that of Start, nil before.
	ctx       context.Context
	informers map[schema.GroupVersionResource]*leasedInformer
	running   sync.WaitGroup
}

var _ metadatainformer.SharedInformerFactory = &metadataInformers{}

func NewMetadataInformers(config *rest.Config) (*metadataInformers, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), controllerManager)
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &metadataInformers{client: client, informers: map[schema.GroupVersionResource]*leasedInformer{}}, nil
}

// leasedInformer is an informer that counts who uses it.
type leasedInformer struct {
	cache.SharedIndexInformer
	generic  informers.GenericInformer
	factory  *metadataInformers
	resource schema.GroupVersionResource
	// These are guarded by the factory's mu. stop is nil until it runs.
	leases int
	stop   context.CancelFunc
}

// Informer implements informers.GenericInformer.
func (i *leasedInformer) Informer() cache.SharedIndexInformer { return i }

// Lister implements informers.GenericInformer.
func (i *leasedInformer) Lister() cache.GenericLister { return i.generic.Lister() }

// GetController returns a controller whose Run blocks as long as its holder wants the informer.
func (i *leasedInformer) GetController() cache.Controller {
	return lease{i.SharedIndexInformer.GetController(), i}
}

type lease struct {
	cache.Controller
	informer *leasedInformer
}

// Run gives the lease back when stop is closed.
func (l lease) Run(stop <-chan struct{}) {
	<-stop
	l.informer.factory.release(l.informer)
}

// RunWithContext gives the lease back when ctx ends.
func (l lease) RunWithContext(ctx context.Context) { l.Run(ctx.Done()) }

// ForResource implements metadatainformer.SharedInformerFactory.
func (f *metadataInformers) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.informers[resource]
	if i == nil {
		generic := metadatainformer.NewFilteredMetadataInformer(f.client, resource, metav1.NamespaceAll, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil)
		i = &leasedInformer{SharedIndexInformer: generic.Informer(), generic: generic, factory: f, resource: resource}
		// It has not been started, so neither can fail.
		_ = i.SetTransform(dropManagedFields)
		_ = i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			klog.FromContext(ctx).V(2).Info("Watch interrupted", "resource", resource, "err", err) // as that of a kind that is gone
		})
		f.informers[resource] = i
	}
	i.leases++
	return i
}

// Start implements metadatainformer.SharedInformerFactory. Whoever starts first says when all end.
func (f *metadataInformers) Start(stop <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx == nil {
		f.ctx = wait.ContextForChannel(stop)
	}
	for _, i := range f.informers {
		if i.stop != nil {
			continue
		}
		var ctx context.Context
		ctx, i.stop = context.WithCancel(f.ctx)
		f.running.Go(func() { i.RunWithContext(ctx) })
	}
}

func (f *metadataInformers) release(i *leasedInformer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i.leases--; i.leases > 0 {
		return
	}
	if i.stop != nil {
		i.stop()
	}
	if f.informers[i.resource] == i {
		delete(f.informers, i.resource)
	}
}

// WaitForCacheSync implements metadatainformer.SharedInformerFactory.
func (f *metadataInformers) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	f.mu.Lock()
	started := map[schema.GroupVersionResource]cache.InformerSynced{}
	for resource, i := range f.informers {
		if i.stop != nil {
			started[resource] = i.HasSynced
		}
	}
	f.mu.Unlock()
	out := map[schema.GroupVersionResource]bool{}
	for resource, synced := range started {
		out[resource] = cache.WaitForCacheSync(stop, synced)
	}
	return out
}

// Shutdown implements metadatainformer.SharedInformerFactory.
func (f *metadataInformers) Shutdown() { f.running.Wait() }

// dropManagedFields leaves out what nobody reads here and what may be most of an object's metadata.
func dropManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}
