// Package gateways says which addresses of Gateways are to leave their statuses, because what they lead to is about to leave a cluster.
package gateways

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// Addresses are those of Gateways, in all clusters.
type Addresses struct {
	// Gateways returns those that a cluster has.
	Gateways func(cluster string) []addresses.Gateway
	// Behind tells of the workloads that Services lead to in a cluster.
	Behind func(cluster string, services []cache.ObjectName) addresses.Behind
}

// Outcome is what becomes of the addresses of a Gateway.
type Outcome struct {
	// Withdrawals are those of the clusters that are to have their addresses out of the status: those that the Gateway leaves, or in which nothing is to
	// run any more that it leads to.
	Withdrawals map[string]summary.Withdrawal
	// News is what users are told.
	News []summary.AddressNews
	// Again is when it is to be looked at again by itself, if it is.
	Again time.Time
}

// Withdraw says what becomes of the addresses of a Gateway of which the clusters have told.
func (a Addresses) Withdraw(key copies.Key, o *metav1.PartialObjectMetadata, told copies.Gathered, now time.Time) (out Outcome) {
	decision, last, published := identity.DecisionOf(o), map[string]summary.Withdrawal{}, map[string][]string{}
	for cluster, entry := range identity.CopiesOf(o) {
		last[cluster] = entry.Withdrawal
	}
	clusters := map[string]summary.Presence{}
	for cluster, report := range told.Reports {
		published[cluster] = summary.GatewayAddresses(report.Live)
		_, stays := decision[cluster]
		clusters[cluster] = presenceOf(report, stays, a.Behind(cluster, a.servicesBehind(cluster, key)), last[cluster])
	}
	out.Withdrawals, out.Again = summary.Withdraw(last, clusters, now)
	out.News = summary.NewsOfAddresses(last, out.Withdrawals, published)
	return out
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
func (a Addresses) servicesBehind(cluster string, key copies.Key) []cache.ObjectName {
	for _, g := range a.Gateways(cluster) {
		if g.Above.Namespace == key.Namespace && g.Above.Name == key.Name {
			return g.Services
		}
	}
	return nil
}
