package storage

import (
	"k8s.io/apiserver/pkg/registry/rest"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
)

func changeCore(storage map[string]rest.Storage, o Options) error {
	pods, err := lookup[*podstore.REST](storage, "pods")
	if err != nil {
		return err
	}
	if err := wrapStrategies(pods.Store, func(s stockStrategy) stockStrategy { return podStrategy{s} }); err != nil {
		return err
	}
	mirrored := &podREST{REST: pods, connections: o.Connections}
	storage["pods"] = mirrored

	below := podsBelow{get: pods.Store.Get, connections: o.Connections, authorizer: o.Authorizer}
	storage["pods/exec"] = &execREST{stream{below}}
	storage["pods/attach"] = &attachREST{stream{below}}
	storage["pods/portforward"] = &portForwardREST{stream{below}}
	storage["pods/proxy"] = &proxyREST{below}
	storage["pods/log"] = &logREST{below}
	if eviction, ok := storage["pods/eviction"].(*podstore.EvictionREST); ok {
		storage["pods/eviction"] = &evictionREST{EvictionREST: eviction, below: below}
	}
	return nil
}
