package syncer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/secrets"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
)

// below is a physical cluster as its syncer sees it.
type below struct {
	*physical.Cluster

	watcher physical.Watcher
	owned   []*physical.Watch // what carries our label
	all     []*physical.Watch // what the controllers below make of it, which carries no label

	projected map[schema.GroupVersionResource]cache.SharedIndexInformer
	secrets   *secrets.Watch
	classes   classes.Set
	slices    *physical.Watch // those that the cluster makes of pods, of which inside tells
	inside    *services.Inside
	apiServer sets.Set[netip.Addr] // what the Service of its API server has; set before anything else runs
}

func newBelow(client kubernetes.Interface, logicalCluster string, budget *bounds.Budget) (*below, error) {
	b := &below{
		Cluster:   physical.New(),
		watcher:   physical.Watcher{Client: client, Budget: budget},
		projected: map[schema.GroupVersionResource]cache.SharedIndexInformer{},
		secrets:   secrets.New(client, logicalCluster, budget),
		classes:   classes.Set{},
	}
	var err error
	for _, kind := range projection.Kinds() {
		if kind.Resource == secretResource {
			b.Stores[kind.Resource] = b.secrets.Store
			continue
		}
		selector := v1alpha1.LabelLogicalCluster + "=" + logicalCluster
		if made := kind.NotMadeThere; made != "" {
			selector += "," + made
		}
		if b.projected[kind.Resource], err = b.watch(&b.owned, kind.Resource, selector, physical.TrimManagedFields); err != nil {
			return nil, err
		}
		b.Stores[kind.Resource] = b.projected[kind.Resource].GetIndexer()
	}
	b.Namespaces = b.projected[namespaceResource]
	if err := b.projected[identity.Services].AddIndexers(cache.Indexers{byClusterIP: indexClusterIPs}); err != nil {
		return nil, fmt.Errorf("index Services by address: %w", err)
	}
	for _, class := range projection.Classes() {
		if b.classes[class.Resource], err = b.watch(&b.all, class.Resource, "", physical.TrimManagedFields); err != nil {
			return nil, err
		}
	}
	for _, row := range []struct {
		informer *cache.SharedIndexInformer
		resource schema.GroupVersionResource
		trim     cache.TransformFunc
	}{
		{&b.ReplicaSets, appsv1.SchemeGroupVersion.WithResource("replicasets"), physical.TrimManagedFields},
		{&b.Revisions, appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), physical.TrimRevision},
		{&b.Pods, podResource, b.TrimPod},
		{&b.Claims, claimResource, physical.TrimManagedFields},
	} {
		if *row.informer, err = b.watch(&b.all, row.resource, "", row.trim); err != nil {
			return nil, err
		}
	}
	ours := v1alpha1.LabelLogicalCluster + "=" + logicalCluster + "," + projection.SlicesOfPods // controllers copy the labels of the Service
	if b.slices, err = b.watcher.Watch(identity.EndpointSlices, ours, services.TrimSlice); err != nil {
		return nil, err
	}
	if err := b.slices.Informer.SetWatchErrorHandlerWithContext(physical.LogWatchError); err != nil {
		return nil, fmt.Errorf("watch EndpointSlices: %w", err)
	}
	if b.inside, err = services.NewInside(b.slices, clock.RealClock{}); err != nil {
		return nil, err
	}
	return b, b.Index()
}

// start runs the watches until ctx ends and waits for the first lists. Namespaces come first: they tell which pods may be ours.
func (b *below) start(ctx context.Context) error {
	b.inside.Start(ctx)
	if err := physical.StartTogether(ctx, b.owned); err != nil {
		return err
	}
	if err := b.secrets.Start(ctx, b.Namespaces.GetIndexer().ListKeys()); err != nil {
		return err
	}
	return physical.StartTogether(ctx, b.all)
}

// watch returns an informer that is started with others.
func (b *below) watch(with *[]*physical.Watch, resource schema.GroupVersionResource, selector string, trim cache.TransformFunc) (cache.SharedIndexInformer, error) {
	w, err := b.watcher.Watch(resource, selector, trim)
	if err != nil {
		return nil, err
	}
	*with = append(*with, w)
	return w.Informer, nil
}

func (b *below) stop() {
	for _, w := range slices.Concat(b.owned, b.all) {
		w.Stop()
	}
	b.inside.Stop()
	b.secrets.Wait()
}

// holdsIn reports whether a namespace holds anything of ours.
func (b *below) holdsIn(namespace string) bool {
	if !b.secrets.Seen(namespace) {
		return true // perhaps
	}
	for resource, store := range b.Stores {
		if resource == namespaceResource {
			continue
		}
		if found, _ := store.IndexKeys(cache.NamespaceIndex, namespace); len(found) > 0 {
			return true
		}
	}
	return false
}
