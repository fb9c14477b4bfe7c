package release

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
)

// LogsOptions are what "release logs" needs.
type LogsOptions struct {
	genericiooptions.IOStreams

	subject
	// Stage and Target narrow down which lines are shown.
	Stage, Target string
	// Follow goes on with what is written from now on.
	Follow bool
}

func newLogsCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &LogsOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:                   "logs NAME [--stage STAGE] [--target TARGET] [--follow]",
		Aliases:               []string{"log"},
		DisableFlagsInUseLine: true,
		Short:                 "Print what has happened in a release",
		Long: templates.LongDesc(`
			Print what has happened in a release, a line each: of all of it, of one stage, or of one target.`),
		Example: templates.Examples(`
			# All of it
			manifold release logs web-x2f

			# One target, as it goes on
			manifold release logs web-x2f --target eu --follow`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			return interrupt.Run(cmd.Context(), o.Run)
		},
	}
	cmd.Flags().StringVar(&o.Stage, "stage", o.Stage, "The id of a stage.")
	cmd.Flags().StringVar(&o.Target, "target", o.Target, "The name of a target.")
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", o.Follow, "Go on until the release has ended.")
	return cmd
}

// Run prints the lines.
func (o *LogsOptions) Run(ctx context.Context) error {
	request := o.client.DeliveryV1alpha1().RESTClient().Get().
		Namespace(o.Namespace).Resource("releases").Name(o.Name).SubResource("log")
	for name, value := range map[string]string{"stage": o.Stage, "target": o.Target} {
		if value != "" {
			request.Param(name, value)
		}
	}
	if o.Follow {
		request.Param("follow", "true")
	}
	lines, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer lines.Close()
	if _, err := io.Copy(o.Out, lines); err != nil {
		return fmt.Errorf("read the log of %s: %w", o.title(), err)
	}
	return nil
}
