package server

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldlisters "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// connections lets the storage find clusters in the registry, but for those that are known to be silent: whoever asks one waits in vain, and
// a Service may have endpoints elsewhere.
type connections struct {
	registry registry
	listed   manifoldlisters.ClusterLister
}

// registry is a clusters.Registry.
type registry interface {
	Get(cluster string) (*connection.Connection, error)
}

func (c connections) Connection(cluster string) (*below.Connection, error) {
	found, err := c.registry.Get(cluster)
	if err != nil {
		return nil, err
	}
	if joined, err := c.listed.Get(cluster); err == nil {
		ready := meta.FindStatusCondition(joined.Status.Conditions, v1alpha1.ClusterReady)
		if ready != nil && ready.Reason == health.ReasonUnreachable {
			return nil, &clusters.NotConnectedError{Cluster: cluster, Message: ready.Message, Joined: true}
		}
	}
	return &below.Connection{
		Name: found.Name, Client: found.Client, Host: found.Host, Transport: found.Transport, UpgradeTransport: found.UpgradeTransport,
	}, nil
}
