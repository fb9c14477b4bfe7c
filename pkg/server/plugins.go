package server

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/scheme"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/plugins"
)

// newPlugins makes the controller of Plugins, and what runs them. Where none are run, the controller says so on each.
func (m *controllers) newPlugins(c CompletedOptions) (parts []part, err error) {
	o := plugins.Options{
		Plugins: m.own.Delivery().V1alpha1().Plugins(), Clusters: m.own.Manifold().V1alpha1().Clusters(),
		Client: m.clients[v1alpha1.PluginsUser].manifold.DeliveryV1alpha1(), Recorder: m.recorder(scheme.Scheme), Queues: m.queues,
	}
	if c.plugins.Dir != "" {
		host, running, err := c.plugins.New(nil)
		if err != nil {
			return nil, err
		}
		m.plugins, o.Host = host, host
		for _, of := range running {
			parts = append(parts, part{of.Name, of.Run})
		}
	}
	controller, err := plugins.New(o)
	if err != nil {
		return nil, err
	}
	return append(parts, part{"plugins", controller.Run}), nil
}
