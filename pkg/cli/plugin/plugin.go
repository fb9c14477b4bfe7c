// Package plugin holds the commands that show the plugins of delivery, restart them, and make some of the configuration of piped.
package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
)

// resource is how the kind is asked for, in full, so that no other group's "plugins" is meant.
const resource = v1alpha1.ResourcePlugins + "." + v1alpha1.GroupName

// NewCommand returns "plugin" with its subcommands.
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plugin COMMAND",
		Aliases: []string{"plugins"},

		DisableFlagsInUseLine: true,

		Short: "Show plugins of delivery, restart them, and import those of a piped",
		Long: templates.LongDesc(`
			Show plugins of delivery, restart them, and import those of a piped. A plugin is a program that speaks the protocol of PipeCD's
			plugins. It runs beside the API server, where an admin has enabled that, and offers stages to applications. "kubectl apply" makes one.`),
		Example: templates.Examples(`
			# See what there is
			manifold plugin list

			# Why one does not answer
			manifold plugin get kubernetes

			# Start it again, and wait until it answers
			manifold plugin restart kubernetes --wait

			# Make Plugins of the configuration of a piped
			manifold plugin import piped.yaml`),
		Args: cobra.NoArgs,
		Run:  cmdutil.DefaultSubCommandRun(streams.ErrOut),
	}
	cmd.AddCommand(
		newListCommand(f, streams),
		newGetCommand(f, streams),
		newRestartCommand(f, streams),
		newImportCommand(f, streams),
	)
	return cmd
}

// logical is the logical cluster.
type logical struct{ client versioned.Interface }

func (l *logical) connect(f cmdutil.Factory) error {
	config, err := f.ToRESTConfig()
	if err != nil {
		return err
	}
	l.client, err = versioned.NewForConfig(config)
	return err
}

func (l *logical) plugins() deliveryclient.PluginInterface {
	return l.client.DeliveryV1alpha1().Plugins()
}

func newListCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	getter := listing.New(resource, streams)
	cmd := &cobra.Command{
		Use:                   "list [NAME...] [-o FORMAT] [-l SELECTOR] [--watch]",
		Aliases:               []string{"ls"},
		DisableFlagsInUseLine: true,
		Short:                 "List plugins",
		Long: templates.LongDesc(`
			List plugins, with whether each answers, the stages that it offers, how often it was started again, and why it last failed.`),
		Example: templates.Examples(`
			# All plugins
			manifold plugin list

			# Why one is not ready, and where its program comes from
			manifold plugin list kubernetes -o wide`),
		ValidArgsFunction: listing.Complete(f, resource, listing.Everything),
		RunE:              func(cmd *cobra.Command, args []string) error { return getter.Run(f, cmd, args) },
	}
	getter.AddListFlags(cmd, false)
	return cmd
}
