package objects

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// Routes reads the objects of custom kinds that share out requests. A kind is watched from when somebody has asked for one of its objects.
type Routes struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper

	mu        sync.Mutex
	ctx       context.Context // nil until they are watched
	changed   func(namespace string)
	informers map[schema.GroupVersionResource]cache.SharedIndexInformer
}

// NewRoutes returns what reads routes by a client.
func NewRoutes(client dynamic.Interface, mapper meta.ResettableRESTMapper) *Routes {
	return &Routes{client: client, mapper: mapper, informers: map[schema.GroupVersionResource]cache.SharedIndexInformer{}}
}

// Watch has changed called for the namespace of every route that changes, until ctx ends.
func (r *Routes) Watch(ctx context.Context, changed func(namespace string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.changed = ctx, changed
}

// Get returns a route, nil if it is not there. Known is false where the logical cluster has no such kind. The object may be read only.
func (r *Routes) Get(ctx context.Context, kind schema.GroupKind, namespace, name string) (route *unstructured.Unstructured, known bool, err error) {
	mapping, err := r.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		r.mapper.Reset() // it may have been defined since
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find kind %s: %w", kind, err)
	}
	informer, err := r.informer(mapping.Resource)
	if err != nil {
		return nil, false, err
	}
	if informer != nil && informer.HasSynced() {
		found, exists, err := informer.GetStore().GetByKey(namespace + "/" + name)
		if err != nil || !exists {
			return nil, true, err
		}
		return found.(*unstructured.Unstructured), true, nil
	}
	found, err := r.client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	return found, true, err
}

// informer watches a kind, nil as long as nobody is told of changes.
func (r *Routes) informer(resource schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.informers[resource]; known != nil || r.ctx == nil {
		return known, nil
	}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(r.client, 0).ForResource(resource).Informer()
	tell := func(obj any) {
		obj = caches.Last(obj)
		if object, is := obj.(metav1.Object); is {
			r.changed(object.GetNamespace())
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	r.informers[resource] = informer
	go informer.RunWithContext(r.ctx)
	return informer, nil
}

// routesManager sets nothing but what clusters hold otherwise, so that neither what users apply nor what an Application does takes it away.
const routesManager = v1alpha1.FieldManager + "-routes"

// mostRoutes is how many bytes of routes an object may carry. All annotations of an object together may have 256 KiB.
const mostRoutes = 128 << 10

// Route has clusters hold an object otherwise than it says, by the text of projection.Routes. Nothing else of the object is touched.
func (w *Writer) Route(ctx context.Context, account Account, kind schema.GroupVersionKind, present metav1.Object, routes string) error {
	key := wanted.Key{Group: kind.Group, Kind: kind.Kind, Name: present.GetName()}
	if len(routes) > mostRoutes {
		return &RefusedError{key, fmt.Errorf("what its clusters would hold otherwise takes %d bytes, and %d are allowed: divide it into several objects", len(routes), mostRoutes)}
	}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	out.SetName(present.GetName())
	out.SetNamespace(present.GetNamespace())
	out.SetUID(present.GetUID())                         // what has come in its place meanwhile may be somebody else's
	out.SetResourceVersion(present.GetResourceVersion()) // and what is said may be out of date: applications share routes
	if routes != "" {
		out.SetAnnotations(map[string]string{v1alpha1.AnnotationRoutes: routes})
	}
	resource, err := w.resource(wanted.Object{Key: key, Manifest: out})
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: routesManager, Force: true}
	if account.ServiceAccount != "" {
		// Whether the object may be written is the ServiceAccount's right. What clusters hold otherwise is for us alone to say.
		client, err := w.client(account)
		if err != nil {
			return err
		}
		asked, nothing := options, out.DeepCopy()
		asked.DryRun = []string{metav1.DryRunAll}
		nothing.SetAnnotations(nil)
		if _, err := client.Resource(resource).Namespace(present.GetNamespace()).Apply(ctx, present.GetName(), nothing, asked); err != nil {
			return refusal(key, err)
		}
	}
	client, err := w.client(Account{})
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(present.GetNamespace()).Apply(ctx, present.GetName(), out, options)
	return refusal(key, err)
}
