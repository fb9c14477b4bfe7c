package controller

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
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
			Published: len(published[cluster]) > 0, Leaves: report.Leaves, Asks: report.Asks, Unserved: report.Unserved, Stale: report.Stale,
		}
	}
	now := c.Clock.Now()
	next, again := summary.Withdraw(last, clusters, now)
	for cluster, withdrawal := range next {
		report := reports[cluster]
		report.Withdrawal = withdrawal
		reports[cluster] = report
	}
	for cluster := range summary.Early(clusters, next, published, kind.Addresses(in)) {
		report := reports[cluster]
		report.Early = true
		reports[cluster] = report
		if soon := now.Add(summary.LookForReady); again.IsZero() || soon.Before(again) {
			again = soon
		}
	}
	if !again.IsZero() {
		c.queue.AddAgain(task{Key: key}, again.Sub(now))
	}
	return func() {
		for _, news := range summary.NewsOfAddresses(last, next, published) {
			if c.Recorder != nil {
				c.Recorder.Event(in, corev1.EventTypeNormal, news.Reason, news.Message)
			}
		}
	}
}

// withdrawOnly takes addresses out of a status that is otherwise kept, because a cluster that cannot be asked may have some in it: others are not to
// wait for that one with their last replicas.
func (c *Controller) withdrawOnly(ctx context.Context, kind summary.Kind, key identity.Key, in summary.Object, reports map[string]summary.Report) error {
	if !kind.HasAddresses() {
		return nil
	}
	tell := c.withdraw(kind, key, in, reports)
	gone, breakdown := map[string]bool{}, identity.BreakdownOf(in)
	for cluster, report := range reports {
		entry := breakdown[cluster]
		if entry.Withdrawal = report.Withdrawal; entry != (summary.ClusterStatus{}) {
			breakdown = withEntry(breakdown, cluster, entry)
		} else {
			delete(breakdown, cluster)
		}
		for _, address := range kind.Addresses(report.Live) {
			if report.Withdrawal.Out() {
				gone[address] = true
			}
		}
	}
	for _, report := range reports {
		for _, address := range kind.Addresses(report.Live) {
			if !report.Withdrawal.Out() {
				delete(gone, address) // another cluster has it too
			}
		}
	}
	next := kind.Without(in, gone)
	setAnnotation(next, v1alpha1.AnnotationStatus, breakdown.String())
	if err := c.write(ctx, key, in, next); err != nil {
		return err
	}
	tell()
	return nil
}

func withEntry(b summary.Breakdown, cluster string, entry summary.ClusterStatus) summary.Breakdown {
	if b == nil {
		b = summary.Breakdown{}
	}
	b[cluster] = entry
	return b
}

// lookAtAddresses looks again at what has addresses in a namespace, since a workload is to run in other clusters now: at what some of them left the status of,
// or are to. If a silent cluster was given up, nobody is going to tell of the addresses there, so these are looked at as well.
func (c *Controller) lookAtAddresses(namespace string, before, after placement.Decision) {
	lost := slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(name string) bool {
		_, stays := after[name]
		cluster, err := c.clusters.Get(name)
		return !stays && err == nil && silent(cluster)
	})
	for _, kind := range summary.Kinds() {
		if !kind.HasAddresses() {
			continue
		}
		found, _ := c.stores[kind.Resource].ByIndex(cache.NamespaceIndex, namespace) // informers have the index
		for _, obj := range found {
			o := obj.(summary.Object)
			if o.GetAnnotations()[v1alpha1.AnnotationStatus] != "" || lost && len(kind.Addresses(o)) > 0 {
				c.queue.Add(task{Key: identity.Key{Resource: kind.Resource, Namespace: namespace, Name: o.GetName()}})
			}
		}
	}
}
