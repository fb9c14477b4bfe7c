// Package admission holds the plugins that refuse, or warn of, what does not make sense in a logical cluster. Decisions are not made
// here but in the storage of workloads, which also sees what never passes a workload's admission: its scale subresource.
package admission

import (
	"io"

	"k8s.io/apiserver/pkg/admission"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Names of the plugins, in the order in which they belong into the chain: before webhooks.
const (
	NodesPlugin   = "ManifoldNodes"
	PinPlugin     = "ManifoldPin"
	MetricsPlugin = "ManifoldMetrics"
	ManagedPlugin = "ManifoldManaged"
	// HeldPlugin warns of changes that clusters do not get before a release.
	HeldPlugin = "ManifoldHeld"
	// OverridesPlugin asks for the right to write overrides.
	OverridesPlugin = "ManifoldOverrides"
	// AccountsPlugin asks for the right to be the ServiceAccount that an Application names.
	AccountsPlugin = "ManifoldAccounts"
	// UsedPlugin asks for the right to use the plugins that an Application names.
	UsedPlugin = "ManifoldPlugins"
	// SecretsPlugin asks for the right to read the Secrets that an Application has the server use.
	SecretsPlugin = "ManifoldSecrets"
	// PipelinesPlugin asks for the rights to what Pipelines show and do.
	PipelinesPlugin = "ManifoldPipelines"
	// ProtectedPlugin warns of what goes nowhere because of its namespace.
	ProtectedPlugin = "ManifoldProtected"
	// PipelineStatusPlugin keeps the statuses of pipelines to Manifold.
	PipelineStatusPlugin = "ManifoldPipelineStatus"
	// PluginStatusPlugin keeps the statuses of plugins to the controller that runs them.
	PluginStatusPlugin = "ManifoldPluginStatus"
	// PodWebhooksPlugin warns of webhooks that are not called for the pods of workloads.
	PodWebhooksPlugin = "ManifoldPodWebhooks"
)

// Names returns the names of all plugins in order.
func Names() []string {
	return []string{NodesPlugin, PinPlugin, MetricsPlugin, ManagedPlugin, HeldPlugin, OverridesPlugin, AccountsPlugin, UsedPlugin, SecretsPlugin, PipelinesPlugin, ProtectedPlugin, PipelineStatusPlugin, PluginStatusPlugin, PodWebhooksPlugin}
}

// Register makes the plugins known under their names. Joined returns the clusters that have joined, in a list that may be changed.
func Register(plugins *admission.Plugins, joined func() []*v1alpha1.Cluster) {
	register := func(name string, plugin admission.Interface) {
		plugins.Register(name, func(io.Reader) (admission.Interface, error) { return plugin, nil })
	}
	register(NodesPlugin, &nodes{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)})
	register(PinPlugin, &words{Handler: admission.NewHandler(admission.Create, admission.Update)})
	register(ManagedPlugin, &managed{Handler: admission.NewHandler(admission.Create, admission.Update)})
	register(HeldPlugin, &held{Handler: admission.NewHandler(admission.Update)})
	register(ProtectedPlugin, &protected{Handler: admission.NewHandler(admission.Create, admission.Update)})
	register(PipelineStatusPlugin, &pipelineStatus{Handler: admission.NewHandler(admission.Create, admission.Update)})
	register(PluginStatusPlugin, &pluginStatus{Handler: admission.NewHandler(admission.Create, admission.Update)})
	register(PodWebhooksPlugin, &podWebhooks{Handler: admission.NewHandler(admission.Create, admission.Update), joined: joined})
	// Each server that is made gets one of its own, with its own authorizer.
	plugins.Register(OverridesPlugin, func(io.Reader) (admission.Interface, error) {
		return &overrides{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
	plugins.Register(AccountsPlugin, func(io.Reader) (admission.Interface, error) {
		return &accounts{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
	plugins.Register(UsedPlugin, func(io.Reader) (admission.Interface, error) {
		return &used{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
	plugins.Register(SecretsPlugin, func(io.Reader) (admission.Interface, error) {
		return &readers{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
	plugins.Register(PipelinesPlugin, func(io.Reader) (admission.Interface, error) {
		return &pipelines{Handler: admission.NewHandler(admission.Create, admission.Update), joined: joined}, nil
	})
	register(MetricsPlugin, &metrics{Handler: admission.NewHandler(admission.Update)})
}
