package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// definitionKind is the kind of definitions of custom kinds.
var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition").GroupKind()

// clusterScoped are the kinds in no namespace that Manifold or Kubernetes has and applications may contain. Nodes, volumes and clusters are not for
// applications to bring.
var clusterScoped = map[schema.GroupKind]schema.GroupVersionResource{
	definitionKind: apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"),
	{Group: corev1.GroupName, Kind: "Namespace"}:                                         corev1.SchemeGroupVersion.WithResource("namespaces"),
	{Group: rbacv1.GroupName, Kind: "ClusterRole"}:                                       rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}:                                rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
	{Group: schedulingv1.GroupName, Kind: "PriorityClass"}:                               schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"),
	{Group: storagev1.GroupName, Kind: "StorageClass"}:                                   storagev1.SchemeGroupVersion.WithResource("storageclasses"),
	{Group: nodev1.GroupName, Kind: "RuntimeClass"}:                                      nodev1.SchemeGroupVersion.WithResource("runtimeclasses"),
	{Group: networkingv1.GroupName, Kind: "IngressClass"}:                                networkingv1.SchemeGroupVersion.WithResource("ingressclasses"),
	{Group: admissionregistrationv1.GroupName, Kind: "ValidatingWebhookConfiguration"}:   admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"),
	{Group: admissionregistrationv1.GroupName, Kind: "MutatingWebhookConfiguration"}:     admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"),
	{Group: admissionregistrationv1.GroupName, Kind: "ValidatingAdmissionPolicy"}:        admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"),
	{Group: admissionregistrationv1.GroupName, Kind: "ValidatingAdmissionPolicyBinding"}: admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"),
	manifold.SchemeGroupVersion.WithKind("ClusterPlacementPolicy").GroupKind():           manifold.SchemeGroupVersion.WithResource("clusterplacementpolicies"),
}

// never reports whether objects of a kind in no namespace are no part of any application, whatever the rights of its ServiceAccount.
func never(gvk schema.GroupVersionKind) bool {
	if _, may := clusterScoped[gvk.GroupKind()]; may {
		return false
	}
	return scheme.Scheme.Recognizes(gvk) || manifold.IsOwnGroup(gvk.Group) || slices.Contains([]string{"apiregistration.k8s.io", "metrics.k8s.io"}, gvk.Group)
}

// ClusterScoped knows the objects in no namespace, by their metadata: those of the table, and those of custom kinds as long as these are defined. They
// have no owner reference to the Application in its namespace that they belong to, which the garbage collector would take for one that is gone: an
// annotation names it. Nil knows none.
type ClusterScoped struct {
	metadata    metadatainformer.SharedInformerFactory
	definitions cache.SharedIndexInformer
	changed     []func(cache.ObjectName)
	begun       atomic.Bool

	// leases are what returns the informers that are not needed any more.
	leases sync.WaitGroup

	mu    sync.Mutex
	kinds map[schema.GroupKind]*followedKind
}

type followedKind struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration
	// stop is closed when the informer is not needed any more.
	stop chan struct{}
}

// NewClusterScoped returns one that knows nothing until it runs. An informer of the factory is ours as long as the Run of its controller lasts.
func NewClusterScoped(metadata metadatainformer.SharedInformerFactory) *ClusterScoped {
	return &ClusterScoped{metadata: metadata, kinds: map[schema.GroupKind]*followedKind{}}
}

// Follow has changed called for the Application of every object that changes. All are added before Run.
func (c *ClusterScoped) Follow(changed func(cache.ObjectName)) {
	if c != nil {
		c.changed = append(c.changed, changed)
	}
}

// Define tells where the definitions of custom kinds are, before Run.
func (c *ClusterScoped) Define(definitions cache.SharedIndexInformer) { c.definitions = definitions }

// Run follows the kinds of the table, and those that definitions make, until ctx ends.
func (c *ClusterScoped) Run(ctx context.Context) error {
	for kind, resource := range clusterScoped {
		if err := c.define(ctx, kind, resource); err != nil {
			return err
		}
	}
	c.begun.Store(true)
	registration, err := c.definitions.AddEventHandler(c.definitionHandler(ctx))
	if err != nil {
		return fmt.Errorf("watch the definitions of custom kinds: %w", err)
	}
	<-ctx.Done()
	_ = c.definitions.RemoveEventHandler(registration) // it ends with the server in any case
	c.mu.Lock()
	for kind, followed := range c.kinds {
		followed.drop()
		delete(c.kinds, kind)
	}
	c.mu.Unlock()
	c.leases.Wait()
	return nil
}

func (c *ClusterScoped) definitionHandler(ctx context.Context) cache.ResourceEventHandler {
	set := func(obj any) {
		crd := obj.(*apiextensionsv1.CustomResourceDefinition)
		kind, resource, is := defines(crd)
		if !is {
			c.undefine(crd)
			return
		}
		if err := c.define(ctx, kind, resource); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot watch a custom kind in no namespace", "kind", kind)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if crd, is := caches.Last(obj).(*apiextensionsv1.CustomResourceDefinition); is {
				c.undefine(crd)
			}
		},
	}
}

// defines returns the kind in no namespace that a definition makes, in the version that is stored or, where that is not served, in another one.
func defines(crd *apiextensionsv1.CustomResourceDefinition) (kind schema.GroupKind, resource schema.GroupVersionResource, is bool) {
	established := slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	})
	version := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && (version == "" || v.Storage) {
			version = v.Name
		}
	}
	names := crd.Status.AcceptedNames
	return schema.GroupKind{Group: crd.Spec.Group, Kind: names.Kind}, schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: names.Plural},
		established && version != "" && crd.Spec.Scope == apiextensionsv1.ClusterScoped
}

// define follows a kind, in place of another version or resource of it.
func (c *ClusterScoped) define(ctx context.Context, kind schema.GroupKind, resource schema.GroupVersionResource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.kinds[kind]
	if ctx.Err() != nil || last != nil && last.resource == resource {
		return nil
	}
	last.drop()
	next := &followedKind{resource: resource, informer: c.metadata.ForResource(resource).Informer(), stop: make(chan struct{})}
	c.leases.Go(func() { next.informer.GetController().Run(next.stop) })
	err := index(next.informer)
	if err == nil {
		next.handler, err = next.informer.AddEventHandler(c.handler())
	}
	if err != nil {
		close(next.stop)
		delete(c.kinds, kind)
		return fmt.Errorf("watch %s: %w", resource, err)
	}
	c.kinds[kind] = next
	c.metadata.Start(ctx.Done())
	return nil
}

// index has an informer, which others may use as well, index what it has by applications.
func index(informer cache.SharedIndexInformer) error {
	if _, has := informer.GetIndexer().GetIndexers()[byApplication]; has { // a kind may be defined again
		return nil
	}
	return informer.AddIndexers(Indexers())
}

func (c *ClusterScoped) undefine(crd *apiextensionsv1.CustomResourceDefinition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, followed := range c.kinds {
		if _, builtIn := clusterScoped[kind]; !builtIn && followed.resource.GroupResource().String() == crd.Name { // by which a definition is always named
			followed.drop()
			delete(c.kinds, kind)
		}
	}
}

// drop gives the informer of a kind back, nil for none.
func (k *followedKind) drop() {
	if k == nil {
		return
	}
	_ = k.informer.RemoveEventHandler(k.handler) // it may have ended with its kind
	close(k.stop)
}

func (c *ClusterScoped) handler() cache.ResourceEventHandler {
	tell := func(obj any) {
		if name, of := applicationOf(obj); of {
			for _, changed := range c.changed {
				changed(name)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell,
		UpdateFunc: func(old, obj any) {
			if old.(metav1.Object).GetResourceVersion() != obj.(metav1.Object).GetResourceVersion() {
				tell(old) // it may have belonged to another one
				tell(obj)
			}
		},
	}
}

// kind is how a kind is followed, nil if it is not.
func (c *ClusterScoped) kind(gk schema.GroupKind) *followedKind {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[gk]
}

// Resource returns how a kind in no namespace is served, false for one that is not followed.
func (c *ClusterScoped) Resource(kind schema.GroupKind) (schema.GroupVersionResource, bool) {
	if followed := c.kind(kind); followed != nil {
		return followed.resource, true
	}
	return schema.GroupVersionResource{}, false
}

// Get returns an object, nil if it is not there. Known is false as long as that is not known.
func (c *ClusterScoped) Get(kind schema.GroupKind, name string) (object *metav1.PartialObjectMetadata, known bool) {
	followed := c.kind(kind)
	if followed == nil {
		return nil, false
	}
	obj, exists, err := followed.informer.GetIndexer().GetByKey(name)
	if err == nil && exists {
		return obj.(*metav1.PartialObjectMetadata), true
	}
	return nil, followed.handler.HasSynced()
}

// Of returns the objects in no namespace that belong to an application.
func (c *ClusterScoped) Of(application cache.ObjectName) (out []observe.Present) {
	for kind, followed := range c.all() {
		for _, object := range caches.Indexed[*metav1.PartialObjectMetadata](followed.informer.GetIndexer(), byApplication, application.String()) {
			out = append(out, observe.Present{Key: wanted.Key{Group: kind.Group, Kind: kind.Kind, Name: object.Name}, Object: object, Custom: true})
		}
	}
	slices.SortFunc(out, func(a, b observe.Present) int { return strings.Compare(a.Group+a.Key.String(), b.Group+b.Key.String()) })
	return out
}

// Known reports whether all that there is of the kinds of the table is known, and, where custom is set, also all of custom kinds.
func (c *ClusterScoped) Known(custom bool) bool {
	if c == nil {
		return true
	}
	for kind, followed := range c.all() {
		if _, builtIn := clusterScoped[kind]; (builtIn || custom) && !followed.handler.HasSynced() {
			return false
		}
	}
	return c.begun.Load()
}

func (c *ClusterScoped) all() map[schema.GroupKind]*followedKind {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[schema.GroupKind]*followedKind, len(c.kinds))
	for kind, followed := range c.kinds {
		out[kind] = followed
	}
	return out
}

// mark names an owner on what can have no owner reference: NAMESPACE/NAME/UID.
func (o Owner) mark() string { return o.Namespace + "/" + o.Name + "/" + string(o.UID) }

// markedBy is the application that an object in no namespace says that it belongs to.
func markedBy(object metav1.Object) (application cache.ObjectName, of bool) {
	parts := strings.Split(object.GetAnnotations()[v1alpha1.AnnotationOwner], "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return cache.ObjectName{}, false
	}
	return cache.NewObjectName(parts[0], parts[1]), true
}
