package custom

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// withdrawals says which clusters are to have the addresses of a Gateway out of its status: those that it leaves, or in which nothing is to run any more
// that it leads to.
func (c *Controller) withdrawals(k copies.Kind, key copies.Key, o *metav1.PartialObjectMetadata, now copies.Gathered) map[string]summary.Withdrawal {
	decision, last, published := identity.DecisionOf(o), map[string]summary.Withdrawal{}, map[string][]string{}
	for cluster, entry := range identity.CopiesOf(o) {
		last[cluster] = entry.Withdrawal
	}
	clusters := map[string]summary.Presence{}
	for cluster, report := range now.Reports {
		published[cluster] = summary.GatewayAddresses(report.Live)
		_, stays := decision[cluster]
		clusters[cluster] = presenceOf(report, stays, c.Syncers.Behind(cluster, c.servicesBehind(cluster, key)), last[cluster])
	}
	at := c.Clock.Now()
	next, again := summary.Withdraw(last, clusters, at)
	if !again.IsZero() {
		c.queue.AddAfter(key, again.Sub(at))
	}
	for _, news := range summary.NewsOfAddresses(last, next, published) {
		c.tell(k, o, aboutAddresses+news.Cluster, placement.Event{Type: corev1.EventTypeNormal, Reason: news.Reason, Message: news.Message})
	}
	return next
}

// presenceOf is what a cluster has to do with the addresses of a Gateway that is to be there, or is not. One that the Gateway leaves asks for them to
// leave the status once nothing runs there that users reach by it, and what runs there asks by itself. A Gateway whose last replicas have gone has
// no more routes to tell that by, so what was withdrawn stays so until some are to run again.
func presenceOf(report summary.CustomReport, stays bool, behind addresses.Behind, last summary.Withdrawal) summary.Presence {
	return summary.Presence{
		Published: len(summary.GatewayAddresses(report.Live)) > 0,
		Leaves:    !stays || !behind.Stays && (behind.Any || last.Out()),
		Asks:      behind.Asks || !stays && (behind.Stays || !behind.Runs),
		Stale:     report.Stale,
	}
}

// servicesBehind returns the Services that a Gateway leads to in a cluster.
func (c *Controller) servicesBehind(cluster string, key copies.Key) []cache.ObjectName {
	for _, g := range c.loops.Gateways(cluster) {
		if g.Above.Namespace == key.Namespace && g.Above.Name == key.Name {
			return g.Services
		}
	}
	return nil
}

// LookAtGateways looks again at the Gateways of a cluster, since what runs behind them has changed.
func (c *Controller) LookAtGateways(cluster string) { c.loops.LookAtGateways(cluster) }
