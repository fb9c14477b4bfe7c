package release

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
	"github.com/manifold-dev/manifold/pkg/cli/release/watching"
)

// WatchOptions are what "release watch" needs.
type WatchOptions struct {
	genericiooptions.IOStreams

	subject
}

func newWatchCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &WatchOptions{IOStreams: streams}
	return &cobra.Command{
		Use:                   "watch NAME",
		DisableFlagsInUseLine: true,
		Short:                 "Follow a release until it has ended",
		Long: templates.LongDesc(`
			Follow a release until it has ended. On a terminal the stages and clusters are drawn in place; elsewhere each change is a line.

			The exit code is 0 if the release succeeds, 1 if it ends in any other way, and 130 if you interrupt this command. The release goes
			on then.`),
		Example: templates.Examples(`
			# A release
			manifold release watch web-x2f

			# In a script
			manifold release watch web-x2f -n shop && echo done`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			return interrupt.Run(cmd.Context(), o.Run)
		},
	}
}

// Run follows the release.
func (o *WatchOptions) Run(ctx context.Context) error {
	return watching.New(o.client, o.Out).Follow(ctx, o.Namespace, o.Name)
}
