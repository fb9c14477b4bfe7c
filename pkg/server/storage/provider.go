package storage

import (
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/kubernetes"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/server/ours"
)

// Connection is what the storage needs of a physical cluster.
type Connection struct {
	// Name is that of the Cluster.
	Name   string
	Client kubernetes.Interface
	// Host is the address of the cluster's API server.
	Host *url.URL
	// Transport authenticates ordinary requests, UpgradeTransport those that leave HTTP behind.
	Transport        http.RoundTripper
	UpgradeTransport UpgradeRequestRoundTripper
}

// Connections finds clusters by name. The error of a cluster that is unknown or does not answer says so in a person's words.
type Connections interface {
	Connection(cluster string) (*Connection, error)
}

// Placer decides where a workload runs. It never blocks on a cluster.
type Placer interface {
	// Place returns the decision for w, whose present one is current. It returns false when the clusters are not known yet.
	Place(w placement.Workload, current placement.Decision) (placement.Result, bool)
	// Placed is told what was decided while the object is on its way to storage, so that decisions made before a watch shows it
	// take it into account.
	Placed(w placement.Workload, decision placement.Decision)
}

// Options is what the changed storage calls upon.
type Options struct {
	Connections Connections
	Placer      Placer
	Authorizer  authorizer.UnconditionalAuthorizer
	// Budgets are the disruption budgets of the logical cluster.
	Budgets policyclient.PodDisruptionBudgetsGetter
	// Endpoints tell which pods serve a Service, and Pods where these are.
	Endpoints discoverylisters.EndpointSliceLister
	Pods      corelisters.PodLister
	// Identity is what marks objects below as those of this logical cluster.
	Identity ours.Identity

	// replicaSets are those of the group that is being changed; nil if it has none.
	replicaSets rest.Lister
}

// change alters the storage of one API group after it was made. The map is that of group version v1, by resource.
type change func(storage map[string]rest.Storage, o Options) error

var changes = map[string]change{
	"":      changeCore,
	"apps":  changeApps,
	"batch": changeBatch,
}

// Change wraps the providers of the groups that differ in a logical cluster.
func Change(providers []controlplaneapiserver.RESTStorageProvider, o Options) []controlplaneapiserver.RESTStorageProvider {
	out := make([]controlplaneapiserver.RESTStorageProvider, 0, len(providers))
	for _, p := range providers {
		c, ok := changes[p.GroupName()]
		if !ok {
			out = append(out, p)
			continue
		}
		wrapped := provider{RESTStorageProvider: p, change: c, options: o}
		if hook, ok := p.(genericapiserver.PostStartHookProvider); ok {
			out = append(out, providerWithHook{provider: wrapped, PostStartHookProvider: hook})
			continue
		}
		out = append(out, wrapped)
	}
	return out
}

type provider struct {
	controlplaneapiserver.RESTStorageProvider
	change  change
	options Options
}

// providerWithHook keeps a provider's start hook visible, which the server finds by type assertion.
type providerWithHook struct {
	provider
	genericapiserver.PostStartHookProvider
}

func (p provider) NewRESTStorage(source serverstorage.APIResourceConfigSource, getter generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info, err := p.RESTStorageProvider.NewRESTStorage(source, getter)
	if err != nil {
		return info, err
	}
	if err := p.change(info.VersionedResourcesStorageMap["v1"], p.options); err != nil {
		return info, fmt.Errorf("change the storage of API group %q: %w", p.GroupName(), err)
	}
	return info, nil
}

// lookup returns the storage of a resource as the type that Kubernetes gives it.
func lookup[T any](storage map[string]rest.Storage, resource string) (T, error) {
	typed, ok := storage[resource].(T)
	if !ok {
		return typed, fmt.Errorf("storage of %s is a %T, not the %T of the pinned Kubernetes version", resource, storage[resource], typed)
	}
	return typed, nil
}
