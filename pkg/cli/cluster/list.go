package cluster

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/listing"
)

// newListCommand returns "list", which is "kubectl get" for one kind.
func newListCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	getter := listing.New(resource, streams)
	cmd := &cobra.Command{
		Use:                   "list [NAME...] [-o FORMAT] [-l SELECTOR] [--watch]",
		Aliases:               []string{"ls", "get"},
		DisableFlagsInUseLine: true,
		Short:                 "List the clusters that have joined",
		Long: templates.LongDesc(`
			List the clusters that have joined, with their health and capacity.`),
		Example: templates.Examples(`
			# All clusters
			manifold cluster list

			# More columns, and what changes from now on
			manifold cluster list -o wide --watch

			# The names of those in one region
			manifold cluster list -l region=eu-west -o name`),
		ValidArgsFunction: completeClusters(f, listing.Everything),
		RunE:              func(cmd *cobra.Command, args []string) error { return getter.Run(f, cmd, args) },
	}
	getter.AddListFlags(cmd, false)
	return cmd
}
