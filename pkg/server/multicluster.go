package server

import (
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	multicluster "github.com/manifold-dev/manifold/pkg/multicluster/controller"
)

// newMultiCluster makes the controller of the Multi-Cluster Services API. It has nothing to do until its kinds are defined.
func (m *controllers) newMultiCluster() (*multicluster.Controller, error) {
	client, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.MultiClusterUser)))
	if err != nil {
		return nil, err
	}
	return multicluster.New(multicluster.Options{
		Kube: m.informers, Manifold: m.own, Kinds: m.custom.Objects(), Endpoints: m.upstream.Endpoints,
		Client: m.clients[v1alpha1.MultiClusterUser].kube, Dynamic: client, Queues: m.queues,
	})
}
