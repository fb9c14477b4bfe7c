// Package services changes the storage of Services: their proxy leads to clusters.
package services

import (
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"

	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

// Options is what the changed storage of Services calls upon.
type Options struct {
	Connections below.Connections
	// Identity is what marks objects below as those of this logical cluster.
	Identity ours.Identity
	// Endpoints tell which pods serve a Service, and Pods where these are.
	Endpoints discoverylisters.EndpointSliceLister
	Pods      corelisters.PodLister
}

// Change has the proxy of Services lead to clusters.
func Change(storage map[string]rest.Storage, o Options) error {
	services, err := builtin.Lookup[*servicestore.REST](storage, "services")
	if err != nil {
		return err
	}
	storage["services"] = &serviceREST{services}
	storage["services/proxy"] = &serviceProxyREST{
		get: services.Get, endpoints: o.Endpoints, pods: o.Pods, connections: o.Connections, identity: o.Identity,
	}
	return nil
}
