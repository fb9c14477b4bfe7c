package server

import (
	"net/http"

	client "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/manifold-dev/manifold/internal/redirects"
	"github.com/manifold-dev/manifold/pkg/registry/metrics"
)

// metrics lets the storage of metrics.k8s.io find clusters, and what of theirs is mirrored.
func (m *controllers) metrics() metrics.Sources {
	nodes, pods, clusters := m.informers.Core().V1().Nodes(), m.informers.Core().V1().Pods(), m.own.Manifold().V1alpha1().Clusters()
	nodesSynced, podsSynced, clustersSynced := nodes.Informer().HasSynced, pods.Informer().HasSynced, clusters.Informer().HasSynced
	return metrics.Sources{
		Clusters: clusters.Lister(),
		Nodes:    nodes.Lister(),
		Pods:     pods.Lister(),
		Synced:   func() bool { return nodesSynced() && podsSynced() && clustersSynced() },
		Connect:  m.metricsOf,
	}
}

func (m *controllers) metricsOf(cluster string) (client.MetricsV1beta1Interface, error) {
	connection, err := m.registry.Get(cluster)
	if err != nil {
		return nil, err
	}
	return client.NewForConfigAndClient(connection.Config, &http.Client{Transport: redirects.Refuse(connection.Transport)})
}
