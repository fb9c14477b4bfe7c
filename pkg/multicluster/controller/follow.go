package controller

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/multicluster"
)

// byClusters reports whether clusters are to carry out an export wherever the Service has pods.
func byClusters(export metav1.Object) bool {
	return export.GetAnnotations()[v1alpha1.AnnotationExportedBy] == v1alpha1.ExportedByClusters
}

// pin has an export go to the clusters that have pods of its Service, if that is what it is to do. While none has any it stays where it is: that may be
// between one pod and the next.
func (r *run) pin(ctx context.Context) error {
	pin := strings.Join(r.view.Sources, ",")
	if !byClusters(r.export) || pin == "" || pin == r.export.Annotations[v1alpha1.AnnotationClusters] {
		return nil
	}
	return r.patch(ctx, map[string]any{"annotations": map[string]any{v1alpha1.AnnotationClusters: pin}})
}

// follow shows the import of an export that goes to clusters, which implementations of the API carry out there: all endpoints, which the logical cluster
// knows itself, and how far the clusters have got. Where the Service leads, and the status of the export, are theirs to say.
func (r *run) follow(ctx context.Context) error {
	if err := r.letGo(ctx); err != nil {
		return err
	}
	if err := r.gather(); err != nil {
		return err
	}
	if err := r.pin(ctx); err != nil {
		return err
	}
	kind, defined := r.Kinds.Resource(multicluster.ImportKind)
	if !defined {
		r.queue.AddAfter(r.name, tryAgain)
		return nil // whoever has an implementation may have no use for it here
	}
	r.export.SetGroupVersionKind(r.kind.GroupVersion().WithKind(mcs.ServiceExportKindName))
	clusters := identity.DecisionOf(r.export).Clusters()
	r.Imports.Want(r.name, kind, clusters)
	if len(clusters) == 0 || r.view.Refuse() != nil {
		return errors.Join(r.bringSlices(ctx, nil), r.deleteImport(ctx))
	}
	live := &mcs.ServiceImport{}
	if there, err := r.read(ctx, kind, live); err != nil || there && !metav1.IsControlledBy(live, r.export) {
		return err // somebody else's stays as it is
	}
	r.view.Theirs = map[string]multicluster.Theirs{}
	for _, cluster := range clusters {
		r.view.Theirs[cluster] = r.Imports.Look(r.name, kind, cluster)
	}
	elsewhere := func(cluster string) bool { return !slices.Contains(clusters, cluster) }
	r.view.Sources = slices.DeleteFunc(r.view.Sources, elsewhere)
	r.parts = slices.DeleteFunc(r.parts, func(part multicluster.Part) bool { return elsewhere(part.Cluster) })
	found, err := r.bringImport(ctx)
	if err != nil {
		return err
	}
	wanted, _ := multicluster.Slices(found, r.parts)
	err = r.bringSlices(ctx, wanted)
	if passes(err) {
		return err
	}
	if err != nil {
		r.view.Trouble = err.Error()
	}
	return errors.Join(err, r.tellImport(ctx, found, len(wanted)))
}
