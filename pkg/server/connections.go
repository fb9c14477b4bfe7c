package server

import (
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/server/storage"
)

// connections lets the storage find clusters in the registry.
type connections struct{ registry *clusters.Registry }

func (c connections) Connection(cluster string) (*storage.Connection, error) {
	found, err := c.registry.Get(cluster)
	if err != nil {
		return nil, err
	}
	return &storage.Connection{
		Client: found.Client, Host: found.Host, Transport: found.Transport, UpgradeTransport: found.UpgradeTransport,
	}, nil
}
