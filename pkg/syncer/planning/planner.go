// Package planning says what is to be done about an object in one cluster. It reads caches and writes nothing.
package planning

import (
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/access"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/terms"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// Options say what plans depend on.
type Options struct {
	*trust.Cluster
	Demand *demand.Graph
	Fleets *moves.Fleets
	Access *access.Access
	Owners *mirrors.Owners
	Terms  terms.Terms
	// Overrides returns what the policy of a workload changes of it in a cluster. It may be nil.
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)
	// Uses reports whether anything that is of no projected kind is in a namespace of a cluster, or is to be. It may be nil.
	Uses func(cluster, namespace string) bool
	// Clock says since when pods are not ready.
	Clock clock.PassiveClock
	// HoldsIn reports whether a namespace of the cluster holds anything of ours.
	HoldsIn func(namespace string) bool
	// PodHooks returns the webhooks of the logical cluster that are asked about pods.
	PodHooks func() []podhooks.Webhook
}

// Planner says what is to be done about an object in one cluster. It writes nothing.
type Planner struct{ Options }

// New returns what plans for a cluster.
func New(o Options) *Planner { return &Planner{o} }

// PodWebhooks is the value of LabelPodWebhooks that a namespace has in a cluster, "" for none.
func (c *Planner) PodWebhooks(above projection.Object) string {
	if !c.Terms.Allows().PodWebhooks {
		return ""
	}
	return podhooks.LabelFor(above.GetLabels(), c.PodHooks())
}
