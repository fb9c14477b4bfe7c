package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Reasons of the events about addresses of clusters.
const (
	ReasonWithdrawn = "AddressWithdrawn"
	ReasonReturned  = "AddressReturned"
)

// withdraw notes in the reports which clusters are to have their addresses out of the status, because the endpoints behind these are about to go. Tell
// writes the events about it, once that is stored.
func (c *Controller) withdraw(kind summary.Kind, key identity.Key, in summary.Object, reports map[string]summary.Report) (tell func()) {
	if !kind.HasAddresses() {
		return func() {}
	}
	last, clusters, published := identity.BreakdownOf(in).WithdrawalsOf(), map[string]summary.Presence{}, map[string][]string{}
	for cluster, report := range reports {
		published[cluster] = kind.Addresses(report.Live)
		clusters[cluster] = summary.Presence{
			Published: len(published[cluster]) > 0, Leaves: report.Leaves, Asks: report.Asks, Stale: report.Stale,
		}
	}
	now := c.Clock.Now()
	next, again := summary.Withdraw(last, clusters, now)
	for cluster, withdrawal := range next {
		report := reports[cluster]
		report.Withdrawal = withdrawal
		reports[cluster] = report
	}
	if !again.IsZero() {
		c.queue.AddAgain(task{Key: key}, again.Sub(now))
	}
	return func() { c.tellWithdrawals(in, last, next, published) }
}

// tellWithdrawals writes an event about each cluster whose addresses have left the status, or are back in it.
func (c *Controller) tellWithdrawals(in summary.Object, last, next map[string]summary.Withdrawal, published map[string][]string) {
	if c.Recorder == nil {
		return
	}
	for _, cluster := range slices.Sorted(maps.Keys(published)) {
		was, is := last[cluster].Out(), next[cluster].Out()
		addresses := strings.Join(published[cluster], ", ")
		switch {
		case is && !was:
			c.Recorder.Event(in, corev1.EventTypeNormal, ReasonWithdrawn,
				fmt.Sprintf("cluster %q: %s left the status, since what it leads to is about to leave the cluster", cluster, addresses))
		case was && !is && addresses != "":
			c.Recorder.Event(in, corev1.EventTypeNormal, ReasonReturned,
				fmt.Sprintf("cluster %q: %s is in the status again, since the cluster is to run again what it leads to", cluster, addresses))
		}
	}
}

// lookAtWithdrawn looks again at what has addresses in a namespace, some of which left the status or are to: a workload behind them is to run in other
// clusters now.
func (c *Controller) lookAtWithdrawn(namespace string) {
	for _, kind := range summary.Kinds() {
		if !kind.HasAddresses() {
			continue
		}
		found, _ := c.stores[kind.Resource].ByIndex(cache.NamespaceIndex, namespace) // informers have the index
		for _, obj := range found {
			o := obj.(summary.Object)
			if o.GetAnnotations()[v1alpha1.AnnotationStatus] != "" {
				c.queue.Add(task{Key: identity.Key{Resource: kind.Resource, Namespace: namespace, Name: o.GetName()}})
			}
		}
	}
}
