package storage

import (
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

func changeCore(storage map[string]rest.Storage, o Options) error {
	pods, err := lookup[*podstore.REST](storage, "pods")
	if err != nil {
		return err
	}
	if err := wrapStrategies(pods.Store, func(s stockStrategy) stockStrategy { return podStrategy{s} }); err != nil {
		return err
	}
	below := podsBelow{get: pods.Store.Get, connections: o.Connections, identity: o.Identity, authorizer: o.Authorizer}
	// What is changed below comes first: it wraps the stock endpoints, and workloads wrap whatever there is.
	if err := changePodChanges(storage, below, pods.Store); err != nil {
		return err
	}
	if err := changeWorkloads(storage, api.GroupName, o); err != nil {
		return err
	}
	storage["pods"] = &podREST{REST: pods, connections: o.Connections, metadata: &podChangeREST{
		patchStorage: pods, same: sameMetadata, below: below, pods: pods.Store,
	}}
	storage["pods/exec"] = &execREST{stream{below}}
	storage["pods/attach"] = &attachREST{stream{below}}
	storage["pods/portforward"] = &portForwardREST{stream{below}}
	storage["pods/proxy"] = &podProxyREST{below}
	storage["pods/log"] = &logREST{below}
	if err := changeClaims(storage, o); err != nil {
		return err
	}
	eviction, err := lookup[*podstore.EvictionREST](storage, "pods/eviction")
	if err != nil {
		return err
	}
	storage["pods/eviction"] = newEvictionREST(eviction, below, o.Budgets)

	services, err := lookup[*servicestore.REST](storage, "services")
	if err != nil {
		return err
	}
	storage["services"] = &serviceREST{services}
	storage["services/proxy"] = &serviceProxyREST{
		get: services.Get, endpoints: o.Endpoints, pods: o.Pods, connections: o.Connections, identity: o.Identity,
	}
	storage["nodes/proxy"] = nodeProxyREST{}
	return changeBindings(storage)
}

// changePodChanges has changes of running pods made below.
func changePodChanges(storage map[string]rest.Storage, below podsBelow, pods rest.Watcher) error {
	for subresource, same := range map[string]func(a, b *api.Pod) bool{
		"ephemeralcontainers": sameEphemeralContainers, "resize": sameResources,
	} {
		stock, err := lookup[patchStorage](storage, "pods/"+subresource)
		if err != nil {
			return err
		}
		change := &podChangeREST{patchStorage: stock, subresource: subresource, same: same, below: below, pods: pods}
		if subresource == "ephemeralcontainers" {
			if change.names, err = debugNamesOf(storage); err != nil {
				return err
			}
		}
		storage["pods/"+subresource] = change
	}
	status, err := lookup[stockStatus](storage, "pods/status")
	if err != nil {
		return err
	}
	storage["pods/status"] = &podStatusREST{stockStatus: status, change: &podChangeREST{
		patchStorage: status, subresource: "status", same: sameConditions, below: below, pods: pods,
	}}
	return nil
}
