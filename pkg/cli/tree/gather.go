package tree

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// listsAtOnce bounds the lists in flight.
const listsAtOnce = 8

// objects is what a tree is made of.
type objects struct {
	// root is the object at the top. It is typed if its kind is known here.
	root projection.Object
	// others are the objects of the root's namespace that can have to do with it. All carry the names of their types.
	others []projection.Object
	// events are the warnings of that namespace.
	events []corev1.Event
	// clusters are those that have joined; nil if the user may not know.
	clusters []manifoldv1alpha1.Cluster
	// release is the one that the root tells of, if that is an application; nil if there is none, or the user may not know.
	release *v1alpha1.Release
	// hidden says, by resource, why objects of it could not be read.
	hidden map[schema.GroupVersionResource]string
}

// kind is a kind of objects that is listed.
type kind struct {
	resource schema.GroupVersionResource
	gvk      schema.GroupVersionKind
}

// further are the kinds that belong to a tree and are never projected.
var further = []kind{
	{appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), appsv1.SchemeGroupVersion.WithKind("ControllerRevision")},
	{autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")},
	{batchv1.SchemeGroupVersion.WithResource("cronjobs"), batchv1.SchemeGroupVersion.WithKind("CronJob")},
}

var (
	secretResource    = corev1.SchemeGroupVersion.WithResource("secrets")
	configMapResource = corev1.SchemeGroupVersion.WithResource("configmaps")
	eventResource     = corev1.SchemeGroupVersion.WithResource("events")
	clusterResource   = manifoldv1alpha1.SchemeGroupVersion.WithResource("clusters")
	namespaceGVK      = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// listed are the kinds of a namespace that are listed for a tree.
func listed() []kind {
	var out []kind
	for _, k := range projection.Kinds() {
		if k.Namespaced {
			out = append(out, kind{k.Resource, k.GVK})
		}
	}
	return append(out, further...)
}

// gatherer reads from the logical cluster.
type gatherer struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
	// mapper knows how kinds are served.
	mapper meta.RESTMapper
}

// gather reads what the tree of an object may show. What the user may not read is left out, and told.
func (g gatherer) gather(ctx context.Context, root *unstructured.Unstructured) (objects, error) {
	typed, err := typedOf(root)
	if err != nil {
		return objects{}, err
	}
	r := &reading{out: objects{root: typed, hidden: map[schema.GroupVersionResource]string{}}}
	namespace := root.GetNamespace()
	if root.GroupVersionKind() == namespaceGVK {
		namespace = root.GetName()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	group.Go(func() error { return r.keep(clusterResource, g.clusters(ctx, r)) })
	if namespace != "" {
		if app, ok := typed.(*v1alpha1.Application); ok {
			group.Go(func() error { return r.keep(releaseResource, g.release(ctx, app, r)) })
			group.Go(func() error { return r.keep(revisionResource, g.customs(ctx, app, r)) })
		}
		group.Go(func() error { return r.keep(eventResource, g.events(ctx, namespace, r)) })
		for _, k := range listed() {
			group.Go(func() error { return r.keep(k.resource, g.list(ctx, k, namespace, r)) })
		}
	}
	return r.out, group.Wait()
}

// reading is what has been read so far.
type reading struct {
	mu  sync.Mutex
	out objects
}

// keep tells apart what the user may not read, which is told, and what went wrong.
func (r *reading) keep(resource schema.GroupVersionResource, err error) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.hidden[resource] = err.Error()
	return nil
}

// list reads the objects of a kind. Of Secrets and ConfigMaps, whose contents do not matter here, it reads the metadata alone.
func (g gatherer) list(ctx context.Context, k kind, namespace string, r *reading) error {
	read := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return g.dynamic.Resource(k.resource).Namespace(namespace).List(ctx, options)
	}
	if k.resource == secretResource || k.resource == configMapResource {
		read = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return g.metadata.Resource(k.resource).Namespace(namespace).List(ctx, options)
		}
	}
	return pager.New(read).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		obj, err := objectOf(k, item)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.out.others = append(r.out.others, obj)
		return nil
	})
}

func (g gatherer) events(ctx context.Context, namespace string, r *reading) error {
	warnings := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning).String()}
	return g.each(ctx, eventResource, namespace, warnings, func(item *unstructured.Unstructured) error {
		var event corev1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &event); err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.out.events = append(r.out.events, event)
		return nil
	})
}

func (g gatherer) clusters(ctx context.Context, r *reading) error {
	return g.each(ctx, clusterResource, "", metav1.ListOptions{}, func(item *unstructured.Unstructured) error {
		var cluster manifoldv1alpha1.Cluster
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &cluster); err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.out.clusters = append(r.out.clusters, cluster)
		return nil
	})
}

func (g gatherer) each(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions,
	visit func(*unstructured.Unstructured) error,
) error {
	read := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return g.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
	}
	return pager.New(read).EachListItem(ctx, options, func(item runtime.Object) error {
		return visit(item.(*unstructured.Unstructured))
	})
}

// objectOf makes a typed object of what was read.
func objectOf(k kind, item runtime.Object) (projection.Object, error) {
	read, ok := item.(*metav1.PartialObjectMetadata)
	if !ok {
		return typedOf(item.(*unstructured.Unstructured))
	}
	if k.resource == configMapResource {
		return &corev1.ConfigMap{TypeMeta: typeMeta(k.gvk), ObjectMeta: read.ObjectMeta}, nil
	}
	out := &corev1.Secret{TypeMeta: typeMeta(k.gvk), ObjectMeta: read.ObjectMeta}
	if _, ok := read.Annotations[corev1.ServiceAccountNameKey]; ok {
		out.Type = corev1.SecretTypeServiceAccountToken // the one that must have the annotation
	}
	return out, nil
}

func typeMeta(gvk schema.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
}

// typedOf makes a typed object, or returns one of a kind that is not known here as it is.
func typedOf(object *unstructured.Unstructured) (projection.Object, error) {
	if object.GroupVersionKind() == applicationGVK {
		return into(object, &v1alpha1.Application{})
	}
	made, err := scheme.Scheme.New(object.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return object, nil
	}
	if err != nil {
		return nil, err
	}
	out, ok := made.(projection.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object with metadata", object.GroupVersionKind())
	}
	return into(object, out)
}

// into reads an object into one of its type.
func into[P projection.Object](object *unstructured.Unstructured, out P) (P, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return out, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return out, nil
}
