package storage

import (
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/claims"
	"github.com/manifold-dev/manifold/pkg/server/storage/pods"
	"github.com/manifold-dev/manifold/pkg/server/storage/services"
	"github.com/manifold-dev/manifold/pkg/server/storage/workloads"
)

func changeCore(storage map[string]rest.Storage, o Options) error {
	// Workloads wrap whatever there is, so pods come first.
	if err := pods.Change(storage, pods.Options{
		Connections: o.Connections, Identity: o.Identity, Authorizer: o.Authorizer, Budgets: o.Budgets,
	}); err != nil {
		return err
	}
	if err := workloads.Change(storage, api.GroupName, o.Placer, o.Fleets); err != nil {
		return err
	}
	if err := claims.Change(storage, o.Connections, o.Identity); err != nil {
		return err
	}
	storage["nodes/proxy"] = nodeProxyREST{}
	return services.Change(storage, services.Options{
		Connections: o.Connections, Identity: o.Identity, Endpoints: o.Endpoints, Pods: o.Pods,
	})
}
