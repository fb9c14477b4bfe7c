// Package pods changes the storage of pods: mirrors are taken as their cluster reports them, and what a user does to one is done where it runs.
package pods

import (
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"

	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

// Options is what the changed storage of pods calls upon.
type Options struct {
	Connections below.Connections
	// Identity is what marks objects below as those of this logical cluster.
	Identity   ours.Identity
	Authorizer authorizer.UnconditionalAuthorizer
	// Budgets are the disruption budgets of the logical cluster.
	Budgets policyclient.PodDisruptionBudgetsGetter
}

// Change has pods that show what runs in a cluster be read, changed and deleted there.
func Change(storage map[string]rest.Storage, o Options) error {
	pods, err := builtin.Lookup[*podstore.REST](storage, "pods")
	if err != nil {
		return err
	}
	if err := builtin.WrapStrategies(pods.Store, func(s builtin.Strategy) builtin.Strategy { return podStrategy{s} }); err != nil {
		return err
	}
	there := podsBelow{get: pods.Store.Get, connections: o.Connections, identity: o.Identity, authorizer: o.Authorizer}
	if err := changePodChanges(storage, there, pods.Store); err != nil {
		return err
	}
	storage["pods"] = &podREST{REST: pods, connections: o.Connections, metadata: &podChangeREST{
		patchStorage: pods, same: sameMarks, below: there, pods: pods.Store,
	}}
	storage["pods/exec"] = &execREST{stream{there}}
	storage["pods/attach"] = &attachREST{stream{there}}
	storage["pods/portforward"] = &portForwardREST{stream{there}}
	storage["pods/proxy"] = &podProxyREST{there}
	storage["pods/log"] = &logREST{there}
	eviction, err := builtin.Lookup[*podstore.EvictionREST](storage, "pods/eviction")
	if err != nil {
		return err
	}
	storage["pods/eviction"] = newEvictionREST(eviction, there, o.Budgets)
	return changeBindings(storage)
}

// changePodChanges has changes of running pods made below.
func changePodChanges(storage map[string]rest.Storage, there podsBelow, pods rest.Watcher) error {
	for subresource, same := range map[string]func(a, b *api.Pod) bool{
		"ephemeralcontainers": sameEphemeralContainers, "resize": sameResources,
	} {
		stock, err := builtin.Lookup[patchStorage](storage, "pods/"+subresource)
		if err != nil {
			return err
		}
		change := &podChangeREST{patchStorage: stock, subresource: subresource, same: same, below: there, pods: pods}
		if subresource == "ephemeralcontainers" {
			if change.names, err = debugNamesOf(storage); err != nil {
				return err
			}
		}
		storage["pods/"+subresource] = change
	}
	status, err := builtin.Lookup[builtin.Status](storage, "pods/status")
	if err != nil {
		return err
	}
	storage["pods/status"] = &podStatusREST{Status: status, change: &podChangeREST{
		patchStorage: status, subresource: "status", same: sameConditions, below: there, pods: pods,
	}}
	return nil
}
