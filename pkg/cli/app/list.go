package app

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
		Use:                   "list [NAME...] [-A] [-o FORMAT] [-l SELECTOR] [--watch]",
		Aliases:               []string{"ls"},
		DisableFlagsInUseLine: true,
		Short:                 "List applications",
		Long: templates.LongDesc(`
			List applications, with the revision that each is to run, whether its targets have it, and how they are.`),
		Example: templates.Examples(`
			# All applications of all namespaces
			manifold app list -A

			# Where they come from, and what changes from now on
			manifold app list -o wide --watch`),
		ValidArgsFunction: listing.Complete(f, resource, listing.Everything),
		RunE:              func(cmd *cobra.Command, args []string) error { return getter.Run(f, cmd, args) },
	}
	getter.AddListFlags(cmd, true)
	return cmd
}
