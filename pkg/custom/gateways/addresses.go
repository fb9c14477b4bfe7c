// Package gateways says which addresses of Gateways are to leave their statuses, because what they lead to is about to leave a cluster, and which are not
// to be there yet.
package gateways

import (
	"maps"
	"slices"
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

	clusters  map[string]summary.Presence
	published map[string][]string
}

// Early returns the clusters whose addresses are not shown yet in a status that has some.
func (o Outcome) Early(shown []string) map[string]bool {
	return summary.Early(o.clusters, o.Withdrawals, o.published, shown)
}

// Withdraw says what becomes of the addresses of a Gateway of which the clusters have told.
func (a Addresses) Withdraw(key copies.Key, o *metav1.PartialObjectMetadata, told copies.Gathered, now time.Time) (out Outcome) {
	decision, last := identity.DecisionOf(o), map[string]summary.Withdrawal{}
	for cluster, entry := range identity.CopiesOf(o) {
		last[cluster] = entry.Withdrawal
	}
	behind := a.behind(key, slices.Collect(maps.Keys(told.Reports)))
	out.clusters, out.published = map[string]summary.Presence{}, map[string][]string{}
	for cluster, report := range told.Reports {
		_, stays := decision[cluster]
		out.clusters[cluster] = presenceOf(report, stays, behind[cluster], last[cluster])
		out.published[cluster] = summary.GatewayAddresses(report.Live)
	}
	out.Withdrawals, out.Again = summary.Withdraw(last, out.clusters, now)
	out.News = summary.NewsOfAddresses(last, out.Withdrawals, out.published)
	return out
}

// behind tells of what runs behind a Gateway in each of the clusters. One to which none of its routes has come yet serves nothing of what they lead to
// in the others.
func (a Addresses) behind(key copies.Key, clusters []string) map[string]addresses.Behind {
	services, everywhere := map[string][]cache.ObjectName{}, []cache.ObjectName{}
	for _, cluster := range clusters {
		services[cluster] = a.servicesBehind(cluster, key)
		everywhere = append(everywhere, services[cluster]...)
	}
	out := map[string]addresses.Behind{}
	for _, cluster := range clusters {
		found := a.Behind(cluster, services[cluster])
		if len(services[cluster]) == 0 && len(everywhere) > 0 {
			found.Unserved = a.Behind(cluster, everywhere).Any
		}
		out[cluster] = found
	}
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
		Unserved:  behind.Unserved,
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
