package cluster

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
)

// newListCommand returns "list", which is "kubectl get" for one kind, so that every output format and --watch work.
func newListCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := get.NewGetOptions("manifold", streams)
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
		ValidArgsFunction: completeClusters(f, maxNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = append([]string{resource}, args...)
			if err := o.Complete(f, cmd, args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(f, args)
		},
	}
	o.PrintFlags.AddFlags(cmd)
	cmd.Flags().BoolVarP(&o.Watch, "watch", "w", o.Watch, "After listing, watch for changes.")
	cmd.Flags().BoolVar(&o.WatchOnly, "watch-only", o.WatchOnly, "Watch for changes without listing first.")
	cmdutil.AddLabelSelectorFlagVar(cmd, &o.LabelSelector)
	return cmd
}
