package syncer

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Custom kinds that policies describe are workloads too. Their copies are made by loops of their own. What their pods need goes along with them
// as with every other workload, by the clusters that have a copy by the record of the logical cluster.

// FollowCustom has what the workloads of a custom kind need go along with them, until stop is called.
func (u *Upstream) FollowCustom(kind projection.Kind, informer cache.SharedIndexInformer) (stop func(), err error) {
	u.AddCustom(kind, informer.GetIndexer())
	registration, err := informer.AddEventHandler(u.router.Custom(kind))
	if err != nil {
		u.RemoveCustom(kind)
		return nil, fmt.Errorf("watch %s: %w", kind.Resource.GroupResource(), err)
	}
	return func() {
		_ = informer.RemoveEventHandler(registration) // an error would say that it is gone
		u.RemoveCustom(kind)
		for _, obj := range informer.GetStore().List() {
			u.router.RouteCustom(kind, obj.(projection.Object), nil)
		}
	}, nil
}

// CustomIsKnown has what was kept for workloads of custom kinds that were not known yet looked at again, now that they are.
func (u *Upstream) CustomIsKnown() {
	if !u.Demand.Withheld() {
		return
	}
	for _, s := range u.Syncers() {
		if s.HasSynced() {
			s.enqueueEverything()
		}
	}
}

// CustomLacks returns what keeps a custom workload out of a cluster, as it keeps every other one out: classes, quotas, and what its pods name. A
// problem is for the user. What is only on its way is not told; waits says so, or the error asks for another try. When it comes, CustomChanged is
// called.
func (u *Upstream) CustomLacks(ctx context.Context, cluster string, w identity.Workload, desired projection.Object) (problem string, waits bool, err error) {
	s, running := u.Syncer(cluster)
	if !running || !s.HasSynced() {
		return "", false, errNotYet
	}
	if problem, waits := s.classes.Refusal(w.Key(), s.classes.Missing(w.Kind, w.Object)); problem != "" || waits {
		return problem, waits, nil
	}
	if !s.bounded(w) || !s.asksAbove(w.GetNamespace()) {
		return "", false, errNotYet
	}
	return s.lacking.Of(ctx, w, desired)
}
