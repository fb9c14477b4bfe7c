package server

import (
	"fmt"
	"os"
	"time"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/scheme"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	controller "github.com/manifold-dev/manifold/pkg/delivery/controller/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
	"github.com/manifold-dev/manifold/pkg/server/keys"
	"github.com/manifold-dev/manifold/pkg/server/plugins"
)

// newPlugins makes the controller of Plugins, and what runs them. Where none are run, the controller says so on each.
func (m *controllers) newPlugins(c CompletedOptions) (parts []part, err error) {
	o := controller.Options{
		Plugins: m.own.Delivery().V1alpha1().Plugins(), Clusters: m.own.Manifold().V1alpha1().Clusters(),
		Client: m.clients[v1alpha1.PluginsUser].manifold.DeliveryV1alpha1(), Recorder: m.recorder(scheme.Scheme), Queues: m.queues,
		Accounts: m.informers.Core().V1().ServiceAccounts(), Secrets: m.informers.Core().V1().Secrets(), Tokens: m.clients[v1alpha1.PluginsUser].kube,
	}
	if c.plugins.Dir != "" {
		if o.Access, err = c.accessFromHere(); err != nil {
			return nil, err
		}
		m.plugins, err = c.plugins.New(plugins.Needs{
			Informers: m.own, Client: m.clients[v1alpha1.PluginServicesUser].manifold, Logs: m.log, Queues: m.queues,
			Repositories: m.repositories, Request: sources.Git{Secrets: m.informers.Core().V1().Secrets().Lister()}.Request, Objects: m.contents.Objects,
		})
		if err != nil {
			return nil, err
		}
		o.Host = m.plugins.Host
		for _, of := range m.plugins.Parts {
			parts = append(parts, part{of.Name, of.Run})
		}
	}
	of, err := controller.New(o)
	if err != nil {
		return nil, err
	}
	return append(parts, part{"plugins", of.Run}), nil
}

// tokensOfPlugins is for how long plugins get tokens. They are made anew long before they end.
const tokensOfPlugins = time.Hour

// accessFromHere is how programs on this host reach the logical cluster: as the administrator's kubeconfig does.
func (c CompletedOptions) accessFromHere() (targets.Access, error) {
	authority, err := os.ReadFile(c.pki.Cert(keys.Authority))
	if err != nil {
		return targets.Access{}, fmt.Errorf("the authority that plugins trust: %w", err)
	}
	return targets.Access{
		Server: keys.LocalURL(c.kube.SecureServing.BindAddress, c.kube.SecureServing.BindPort), Authority: authority, Duration: tokensOfPlugins,
	}, nil
}
