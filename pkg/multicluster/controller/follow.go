package controller

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/multicluster"
)

// follow shows the import of an export that goes to clusters, which implementations of the API carry out there: all endpoints, which the logical cluster
// knows itself, and how far the clusters have got. Where the Service leads, and the status of the export, are theirs to say.
func (r *run) follow(ctx context.Context) error {
	if err := r.letGo(ctx); err != nil {
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
	if err := r.gather(); err != nil {
		return err
	}
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
