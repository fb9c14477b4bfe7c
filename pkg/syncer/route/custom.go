package route

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Custom sends what the workloads of a custom kind need, or needed, to the clusters that have a copy, or had one. Their copies are made by others.
func (r *Router) Custom(kind projection.Kind) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { r.RouteCustom(kind, nil, obj.(projection.Object)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(projection.Object), obj.(projection.Object)
			if changed(kind, before, after) || !slices.Equal(identity.CopiedTo(before), identity.CopiedTo(after)) {
				r.RouteCustom(kind, before, after)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := caches.Last(obj).(projection.Object); ok {
				r.RouteCustom(kind, gone, nil)
			}
		},
	}
}

// RouteCustom enqueues what a custom workload needs, or needed, nil where it is new or gone.
func (r *Router) RouteCustom(kind projection.Kind, before, after projection.Object) {
	r.priorities(kind, before, after)
	for _, version := range []projection.Object{after, before} {
		if version == nil {
			continue
		}
		dependents := r.Demand.DependentsAnywhere(identity.Workload{Kind: kind, Object: version})
		for _, cluster := range identity.CopiedTo(version) {
			c, connected := r.Cluster(cluster)
			if !connected {
				continue
			}
			had := before != nil && slices.Contains(identity.CopiedTo(before), cluster)
			for _, dependent := range dependents {
				r.dependent(c, dependent, true, had)
			}
		}
	}
}
