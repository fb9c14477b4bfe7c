package server

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/appdeployments"
)

// newAppDeployments makes the controller of ApplicationDeployments. It has nothing to do until their kind is defined.
func (m *controllers) newAppDeployments() (*appdeployments.Controller, error) {
	config := asJSON(m.identities.As(v1alpha1.AppDeploymentsUser))
	client, mapper, err := anyKind(config)
	if err != nil {
		return nil, err
	}
	return appdeployments.New(appdeployments.Options{
		Kube: m.informers, Manifold: m.own, Contents: m.contents, Client: m.clients[v1alpha1.AppDeploymentsUser].manifold, Dynamic: client,
		Objects: objectClients(config), Mapper: mapper, Kinds: m.custom.Objects(),
		Queues: m.queues,
	})
}
