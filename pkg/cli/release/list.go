package release

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
)

// newListCommand returns "list", which is "kubectl get" for one kind.
func newListCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	getter := listing.New(resource, streams)
	application := ""
	cmd := &cobra.Command{
		Use:                   "list [NAME...] [--app APPLICATION] [-A] [-o FORMAT] [-l SELECTOR] [--watch]",
		Aliases:               []string{"ls"},
		DisableFlagsInUseLine: true,
		Short:                 "List releases",
		Long: templates.LongDesc(`
			List releases, with the revision that each brings, how far it is, and the stage that it is in.`),
		Example: templates.Examples(`
			# All releases of a namespace
			manifold release list -n shop

			# Those of one application, and what changes from now on
			manifold release list --app web --watch

			# Who made them, and what they wait for
			manifold release list -o wide`),
		ValidArgsFunction: listing.Complete(f, resource, listing.Everything),
		RunE: func(cmd *cobra.Command, args []string) error {
			if application != "" {
				getter.Select(v1alpha1.LabelApplication + "=" + application)
			}
			return getter.Run(f, cmd, args)
		},
	}
	getter.AddListFlags(cmd, true)
	cmd.Flags().StringVar(&application, "app", application, "List those of this application alone.")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("app", listing.Complete(f, "applications."+v1alpha1.GroupName, listing.Everything)))
	return cmd
}
