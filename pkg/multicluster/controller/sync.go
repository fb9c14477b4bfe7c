package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/multicluster"
)

// run is one look at a ServiceExport.
type run struct {
	*Controller
	name   cache.ObjectName
	kind   schema.GroupVersionResource
	export *mcs.ServiceExport
	view   multicluster.Export
	parts  []multicluster.Part
}

// sync brings what stands for an exported Service up to date.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) error {
	kind, defined := c.Kinds.Resource(multicluster.ExportKind)
	if !defined {
		return nil // its objects are told of when it is
	}
	r := &run{Controller: c, name: name, kind: kind, export: &mcs.ServiceExport{}}
	there, err := r.read(ctx, kind, r.export)
	if err == nil && there && r.export.DeletionTimestamp == nil && (byClusters(r.export) || c.goesBelow(multicluster.ExportKind, r.export)) {
		return r.follow(ctx)
	}
	if err == nil {
		c.Imports.Want(name, schema.GroupVersionResource{}, nil)
	}
	if err != nil || !there {
		return err // what was made of one that is gone belonged to it
	}
	if r.export.DeletionTimestamp != nil {
		return r.failed(ctx, r.leave(ctx))
	}
	if err := r.gather(); err != nil {
		return err
	}
	if r.view.Refuse() != nil {
		err = r.leave(ctx)
	} else {
		err = r.carryOut(ctx)
	}
	if passes(err) {
		return err
	}
	if err != nil {
		r.view.Trouble = err.Error()
	}
	return errors.Join(err, r.tell(ctx, r.view.Conditions(r.export.Generation)))
}

// passes reports whether something failed because somebody was faster, which the watch is about to show.
func passes(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// failed tells what keeps an export that is deleted from going, and returns it.
func (r *run) failed(ctx context.Context, err error) error {
	if err == nil || passes(err) {
		return err
	}
	return errors.Join(err, r.tell(ctx, []metav1.Condition{multicluster.Leaving(r.export.Generation, err.Error())}))
}

// goesBelow reports whether an object of the API is for clusters to carry out: one that is pinned or placed, or was and is not let go of yet.
func (c *Controller) goesBelow(kind schema.GroupKind, object metav1.Object) bool {
	for _, key := range []string{v1alpha1.AnnotationClusters, v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus} {
		if _, has := object.GetAnnotations()[key]; has {
			return true
		}
	}
	known, _ := c.Kinds.Get(kind, object.GetNamespace(), object.GetName())
	return known != nil && c.Kinds.Awaited(kind, known)
}

// gather finds the Service, and where its pods are.
func (r *run) gather() error {
	r.view = multicluster.Export{Namespace: r.name.Namespace, Name: r.name.Name}
	service, err := r.services.Services(r.name.Namespace).Get(r.name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.view.Service = service
	clusters, err := r.networks()
	if err != nil {
		return err
	}
	sources := sets.New[string]()
	for _, slice := range r.Endpoints.MadeOfPods(r.name) {
		for _, cluster := range r.Endpoints.Sources(slice) {
			known, joined := clusters[cluster]
			if !joined {
				continue
			}
			sources.Insert(cluster)
			if !known.silent {
				r.parts = append(r.parts, multicluster.Part{Cluster: cluster, Of: slice, Endpoints: r.Endpoints.From(slice, service, cluster)})
			}
		}
	}
	r.view.Sources = sets.List(sources)
	for _, known := range clusters {
		r.view.Networked = r.view.Networked || known.network != ""
	}
	r.view.Alone = slices.DeleteFunc(slices.Clone(r.view.Sources), func(cluster string) bool { return clusters[cluster].network != "" })
	return nil
}

// member is what is known of a cluster.
type member struct {
	network string
	silent  bool
}

func (c *Controller) networks() (map[string]member, error) {
	all, err := c.clusters.List(everything)
	if err != nil {
		return nil, err
	}
	out := map[string]member{}
	for _, cluster := range all {
		out[cluster.Name] = member{cluster.Spec.Network, silent(cluster)}
	}
	return out, nil
}

// carryOut has the Service lead to all of its pods, and shows these. The finalizer comes before there is anything to be taken away again.
func (r *run) carryOut(ctx context.Context) error {
	if !slices.Contains(r.export.Finalizers, multicluster.Finalizer) {
		if err := r.finalizers(ctx, append(slices.Clone(r.export.Finalizers), multicluster.Finalizer)); err != nil {
			return err
		}
	}
	if r.view.Annotates() {
		if err := r.annotate(ctx, r.view.Service.UID, map[string]string{v1alpha1.AnnotationTraffic: string(v1alpha1.TrafficGlobal)}); err != nil {
			return fmt.Errorf("have Service %s lead to the pods of all clusters: %w", r.name.Name, err)
		}
	}
	found, err := r.bringImport(ctx)
	if err != nil {
		return err
	}
	wanted, unshown := multicluster.Slices(found, r.parts)
	r.view.Unshown = unshown
	if err := r.bringSlices(ctx, wanted); err != nil {
		return err
	}
	return r.tellImport(ctx, found, len(wanted))
}

// leave takes back what the export has made, and lets it go. The Service is left as its users have it.
func (r *run) leave(ctx context.Context) error {
	if err := r.bringSlices(ctx, nil); err != nil {
		return err
	}
	if err := r.deleteImport(ctx); err != nil {
		return err
	}
	return r.letGo(ctx)
}

// letGo has the Service be as its users have it.
func (r *run) letGo(ctx context.Context) error {
	if !slices.Contains(r.export.Finalizers, multicluster.Finalizer) {
		return nil
	}
	service, err := r.services.Services(r.name.Namespace).Get(r.name.Name)
	if err == nil {
		err = r.annotate(ctx, service.UID, nil)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the annotation back that Service %s leads to the pods of all clusters: %w", r.name.Name, err)
	}
	return r.finalizers(ctx, slices.DeleteFunc(slices.Clone(r.export.Finalizers), func(f string) bool { return f == multicluster.Finalizer }))
}
