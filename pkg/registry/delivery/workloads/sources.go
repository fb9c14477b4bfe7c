package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	deliveryinformers "github.com/manifold-dev/manifold/generated/informers/externalversions/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// mostRead bounds how many objects of a custom kind are read for a page.
const mostRead = 20000

// Options are what versions are read from.
type Options struct {
	// Kube and Applications are the informers of the logical cluster.
	Kube         informers.SharedInformerFactory
	Applications deliveryinformers.ApplicationInformer
	// Client reads custom kinds, by rights of its own. What a caller may not list is left out.
	Client dynamic.Interface
	// Held knows what objects are in clusters that are held at a revision, and Overrides what policies change of them there.
	Held      *held.Versions
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)
	// Authorizer says what the caller may list.
	Authorizer authorizer.Authorizer
}

// New makes the storage.
func New(o Options) *REST {
	apps, batch := o.Kube.Apps().V1(), o.Kube.Batch().V1()
	out := &REST{authorizer: o.Authorizer, table: columns()}
	var synced []cache.InformerSynced
	for _, cached := range []struct {
		kind     schema.GroupVersionKind
		resource string
		informer cache.SharedIndexInformer
	}{
		{appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", apps.Deployments().Informer()},
		{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "statefulsets", apps.StatefulSets().Informer()},
		{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "daemonsets", apps.DaemonSets().Informer()},
		{batchv1.SchemeGroupVersion.WithKind("CronJob"), "cronjobs", batch.CronJobs().Informer()},
		{v1alpha1.SchemeGroupVersion.WithKind("Application"), "applications", o.Applications.Informer()},
	} {
		synced = append(synced, cached.informer.HasSynced)
		out.sources = append(out.sources, source{
			kinds: []string{cached.kind.Kind},
			list:  o.cached(cached.informer.GetIndexer(), cached.kind, cached.kind.GroupVersion().WithResource(cached.resource)),
		})
	}
	for _, gk := range flux {
		out.sources = append(out.sources, source{kinds: []string{gk.Kind}, list: o.custom(gk, versions.Custom[gk].Resource)})
	}
	out.sources = append(out.sources, source{kinds: []string{versions.HelmRelease.Kind, versions.Kustomization.Kind}, list: o.shown})
	out.known = func() bool {
		return !slices.ContainsFunc(synced, func(has cache.InformerSynced) bool { return !has() })
	}
	return out
}

// flux are the kinds of Flux that have versions, in the order in which they are listed, and fluxVersions those that its releases have served them in.
var (
	flux         = []schema.GroupKind{versions.HelmRelease, versions.Kustomization}
	fluxVersions = []string{"v2", "v1", "v2beta2", "v2beta1", "v1beta2"}
)

// source is where workloads are found.
type source struct {
	kinds []string
	// list returns what the caller may see, sorted by key, and what could not be read.
	list func(ctx context.Context, namespace string, rights *rights) ([]found, []v1alpha1.VersionsError)
}

// found is a workload whose versions are read when somebody asks for them.
type found struct {
	namespace, name string
	labels          labels.Set
	version         func() v1alpha1.WorkloadVersion
}

// key orders what a source has.
func (f found) key() string { return f.namespace + "/" + f.name }

func sorted(out []found) []found {
	slices.SortFunc(out, func(a, b found) int { return strings.Compare(a.key(), b.key()) })
	return out
}

// hidden tells a caller of what they may not list, which says nothing of whether there is any.
func hidden(ctx context.Context, resource schema.GroupVersionResource, namespace string, rights *rights) []v1alpha1.VersionsError {
	if rights.list(ctx, resource, namespace) {
		return nil
	}
	message := fmt.Sprintf("left out but for namespaces in which you may list %s", resource.GroupResource())
	if namespace != metav1.NamespaceAll {
		message = fmt.Sprintf("left out: you may not list %s in this namespace", resource.GroupResource())
	}
	return []v1alpha1.VersionsError{{Namespace: namespace, Resource: resource.GroupResource().String(), Message: message}}
}

// cached lists objects that are in memory.
func (o Options) cached(
	indexer cache.Indexer, gvk schema.GroupVersionKind, resource schema.GroupVersionResource,
) func(context.Context, string, *rights) ([]found, []v1alpha1.VersionsError) {
	return func(ctx context.Context, namespace string, rights *rights) (out []found, _ []v1alpha1.VersionsError) {
		// Listing from a cache cannot fail.
		_ = cache.ListAllByNamespace(indexer, namespace, labels.Everything(), func(object any) {
			above, ok := object.(projection.Object)
			if !ok || !rights.list(ctx, resource, above.GetNamespace()) {
				return
			}
			out = append(out, found{above.GetNamespace(), above.GetName(), above.GetLabels(), func() v1alpha1.WorkloadVersion { return o.versionOf(gvk, above) }})
		})
		return sorted(out), hidden(ctx, resource, namespace, rights)
	}
}

// custom lists objects of a kind that is there only where somebody has defined it.
func (o Options) custom(gk schema.GroupKind, name string) func(context.Context, string, *rights) ([]found, []v1alpha1.VersionsError) {
	return func(ctx context.Context, namespace string, rights *rights) ([]found, []v1alpha1.VersionsError) {
		resource, objects, err := o.read(ctx, gk, name, namespace)
		if err != nil {
			return nil, []v1alpha1.VersionsError{{Namespace: namespace, Resource: gk.Group + "/" + name, Message: err.Error()}}
		}
		if resource.Version == "" {
			return nil, nil
		}
		var out []found
		for _, above := range objects {
			if rights.list(ctx, resource, above.GetNamespace()) {
				out = append(out, found{above.GetNamespace(), above.GetName(), above.GetLabels(), func() v1alpha1.WorkloadVersion {
					return o.copied(gk.WithVersion(resource.Version), above)
				}})
			}
		}
		return sorted(out), hidden(ctx, resource, namespace, rights)
	}
}

// read returns the objects of a custom kind, and how they are served. The version is empty where nobody has defined the kind.
func (o Options) read(ctx context.Context, gk schema.GroupKind, name, namespace string) (schema.GroupVersionResource, []*unstructured.Unstructured, error) {
	for _, version := range fluxVersions {
		resource := schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: name}
		objects, err := o.each(ctx, resource, namespace)
		if !apierrors.IsNotFound(err) {
			return resource, objects, err
		}
	}
	return schema.GroupVersionResource{}, nil, nil
}

// each reads all objects of a resource.
func (o Options) each(ctx context.Context, resource schema.GroupVersionResource, namespace string) (out []*unstructured.Unstructured, err error) {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return o.Client.Resource(resource).Namespace(namespace).List(ctx, options)
	}
	// What the server has in memory will do.
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{ResourceVersion: "0"}, func(item runtime.Object) error {
		object, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("an item is %T", item)
		}
		if len(out) >= mostRead {
			return fmt.Errorf("there are more than %d: ask for one namespace", mostRead)
		}
		out = append(out, object)
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	return out, err
}

// shown lists what pipelines show of objects of Flux that clusters have by themselves. Whoever may read a pipeline reads it there, too.
func (o Options) shown(ctx context.Context, namespace string, rights *rights) (out []found, problems []v1alpha1.VersionsError) {
	here := map[string]bool{}
	for _, gk := range flux {
		_, objects, err := o.read(ctx, gk, versions.Custom[gk].Resource, namespace)
		if err != nil {
			return nil, nil // which has been told where they are listed
		}
		for _, object := range objects {
			here[gk.Kind+"/"+object.GetNamespace()+"/"+object.GetName()] = true
		}
	}
	in := map[string]*v1alpha1.WorkloadVersion{}
	for _, version := range weave.GroupVersions {
		resource := version.WithResource(weave.Resource)
		pipelines, err := o.each(ctx, resource, metav1.NamespaceAll)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			problems = append(problems, v1alpha1.VersionsError{Resource: resource.GroupResource().String(), Message: err.Error()})
			continue
		}
		for _, read := range pipelines {
			if !rights.list(ctx, resource, read.GetNamespace()) {
				continue
			}
			if of, err := weave.Read(read); err == nil { // what does not read shows nothing
				gather(in, here, namespace, of)
			}
		}
	}
	for _, v := range in {
		slices.SortFunc(v.Clusters, func(a, b v1alpha1.ClusterVersion) int { return cmp.Compare(a.Cluster, b.Cluster) })
		out = append(out, found{v.Namespace, v.Name, nil, func() v1alpha1.WorkloadVersion { return *v }})
	}
	return sorted(out), problems
}

// gather adds what a pipeline shows of the objects of Flux in clusters, but for those that are here.
func gather(in map[string]*v1alpha1.WorkloadVersion, here map[string]bool, namespace string, of *weave.Pipeline) {
	for _, e := range of.Status.Environments {
		if e == nil {
			continue
		}
		for i := range e.Targets {
			target := &e.Targets[i]
			if target.Name == "" || namespace != metav1.NamespaceAll && namespace != target.Namespace {
				continue
			}
			for j := range target.Workloads {
				w := &target.Workloads[j]
				at := slices.IndexFunc(flux, func(gk schema.GroupKind) bool { return gk.Kind == w.Kind })
				key := w.Kind + "/" + target.Namespace + "/" + w.Name
				if at < 0 || here[key] {
					continue
				}
				if in[key] == nil {
					made := named(flux[at].WithVersion(fluxVersions[at]), target.Namespace, w.Name)
					in[key] = &made
				}
				has := func(c v1alpha1.ClusterVersion) bool { return c.Cluster == target.Name }
				if !slices.ContainsFunc(in[key].Clusters, has) {
					in[key].Clusters = append(in[key].Clusters, v1alpha1.ClusterVersion{Cluster: target.Name, Version: w.Version, Images: w.Images, Error: target.Error})
				}
			}
		}
	}
}
