package storage

import (
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/batch"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/views"
	"github.com/manifold-dev/manifold/pkg/server/storage/workloads"
)

// Options is what the changed storage calls upon.
type Options struct {
	Connections below.Connections
	Placer      workloads.Placer
	Fleets      workloads.Fleets
	Authorizer  authorizer.UnconditionalAuthorizer
	// Budgets are the disruption budgets of the logical cluster.
	Budgets policyclient.PodDisruptionBudgetsGetter
	// Endpoints tell which pods serve a Service, and Pods where these are.
	Endpoints discoverylisters.EndpointSliceLister
	Pods      corelisters.PodLister
	// Identity is what marks objects below as those of this logical cluster.
	Identity ours.Identity
	// Viewed changes what is seen and written through the views of clusters. It comes last, over all other changes.
	Viewed *views.Viewed
}

// change alters the storage of one API group after it was made. The map is that of group version v1, by resource.
type change func(storage map[string]rest.Storage, o Options) error

var changes = map[string]change{
	"":      changeCore,
	"apps":  placed(apps.GroupName),
	"batch": placed(batch.GroupName),
}

// placed changes a group that differs in its workloads alone.
func placed(group string) change {
	return func(storage map[string]rest.Storage, o Options) error {
		return workloads.Change(storage, group, o.Placer, o.Fleets)
	}
}

// Change wraps the providers of the groups that differ in a logical cluster, or are seen through the views of clusters.
func Change(providers []controlplaneapiserver.RESTStorageProvider, o Options) []controlplaneapiserver.RESTStorageProvider {
	out := make([]controlplaneapiserver.RESTStorageProvider, 0, len(providers))
	for _, p := range providers {
		c, differs := changes[p.GroupName()]
		if !differs && (o.Viewed == nil || !views.InGroup(p.GroupName())) {
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
	stored := info.VersionedResourcesStorageMap["v1"]
	if p.change != nil {
		if err := p.change(stored, p.options); err != nil {
			return info, fmt.Errorf("change the storage of API group %q: %w", p.GroupName(), err)
		}
	}
	if p.options.Viewed != nil {
		if err := p.options.Viewed.Change(stored, p.GroupName()); err != nil {
			return info, fmt.Errorf("change the storage of API group %q for views: %w", p.GroupName(), err)
		}
	}
	return info, nil
}
