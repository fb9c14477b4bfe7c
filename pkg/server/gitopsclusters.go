package server

import (
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/gitopsclusters"
)

// newGitopsClusters makes the controller of GitopsClusters. It has nothing to do until their kind is defined.
func (m *controllers) newGitopsClusters() (*gitopsclusters.Controller, error) {
	client, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.GitopsClustersUser)))
	if err != nil {
		return nil, err
	}
	return gitopsclusters.New(gitopsclusters.Options{
		Kinds: m.custom.Objects(), Clusters: m.own.Manifold().V1alpha1().Clusters(), Client: client, Queues: m.queues,
	})
}
