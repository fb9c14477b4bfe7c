package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/follow"
	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/tree"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// GetOptions are what "pipeline get" needs.
type GetOptions struct {
	genericiooptions.IOStreams

	subject
	// Wide tells of each target by itself.
	Wide bool
	// Watch shows each change.
	Watch bool
	// Related is the environment whose objects are shown in place of the pipeline.
	Related string

	mapper meta.RESTMapper
	grow   func(context.Context, *unstructured.Unstructured) (*tree.Node, error)
}

func newGetCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &GetOptions{IOStreams: streams}
	getter := listing.New("", streams)
	cmd := &cobra.Command{
		Use:                   "get NAME [-o wide|FORMAT] [--watch | --related ENVIRONMENT] [--group GROUP]",
		Aliases:               []string{"show", "describe"},
		DisableFlagsInUseLine: true,
		Short:                 "Show a pipeline, with a column for each environment",
		Long: templates.LongDesc(`
			Show a pipeline, with a column for each environment: the versions that its targets run, how many are ready, how far the last
			promotion is, what waits for a person, and what people have asked for. Below stand what is wrong, what can be done about it, and
			what starts or carries a promotion: sources, image automations, webhooks, pull requests and events.

			With -o wide each target is told of by itself. With --related the objects of one environment are shown as "manifold tree" does: the
			sources of the app, and what it consists of. Those are objects of the logical cluster, and what becomes of them in clusters. Of what a
			cluster has by itself, such as a HelmRelease of a Flux that runs there, a cluster that has joined with --allow-pipelines shows the
			version, the conditions and the images; and to who may get such an object in the namespace of that name, what it says that it comes
			from and that it has made there. How those fare is to be looked at there.`),
		Example: templates.Examples(`
			# A pipeline
			manifold pipeline get podinfo

			# As it goes on
			manifold pipeline get podinfo --watch

			# What the app consists of in prod, and where it comes from
			manifold pipeline get podinfo --related prod

			# For a script
			manifold pipeline get podinfo -o jsonpath='{.status.environments.prod.waitingStatus.revision}'`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			o.Wide, o.Watch = getter.Wide(), getter.Watches()
			if o.Related != "" && (o.Watch || getter.Formatted()) {
				return cmdutil.UsageErrorf(cmd, "--related goes neither with --watch nor with --output")
			}
			if getter.Formatted() && !o.Wide {
				resource, _, err := o.find(cmd.Context())
				if err != nil {
					return err
				}
				getter.Resource = inFull(resource)
				return getter.Run(f, cmd, args)
			}
			var err error
			if o.mapper, err = f.ToRESTMapper(); err != nil {
				return err
			}
			o.grow = func(ctx context.Context, root *unstructured.Unstructured) (*tree.Node, error) {
				return tree.Of(ctx, f, root)
			}
			return interrupt.Run(cmd.Context(), o.Run)
		},
	}
	getter.AddFlags(cmd)
	cmd.Flags().StringVar(&o.Related, "related", o.Related, "Show the objects of the app in this environment, and its sources.")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("related", completeEnvironment(f, &o.subject)))
	o.addFlags(cmd)
	return cmd
}

// Run shows the pipeline.
func (o *GetOptions) Run(ctx context.Context) error {
	resource, p, err := o.find(ctx)
	if err != nil {
		return err
	}
	switch {
	case o.Related != "":
		return o.related(ctx, p)
	case o.Watch:
		o.Group = resource.Group
		return o.watch(ctx)
	}
	lines := show(p, o.Wide, time.Now())
	lines = append(append(lines, ""), output.Table(triggers(p, o.feeds(ctx, p)))...)
	return printLines(o.Out, lines)
}

// watch shows each state: on a terminal in the place of the one before, elsewhere one below the other.
func (o *GetOptions) watch(ctx context.Context) error {
	resources, err := o.resources()
	if err != nil {
		return err
	}
	screen, first := output.ScreenOf(o.Out), true
	client := o.client.Resource(resources[0]).Namespace(o.Namespace)
	return follow.Object(ctx, client, o.client, &unstructured.Unstructured{}, o.Name, func(found *unstructured.Unstructured) (bool, error) {
		if found == nil {
			return true, fmt.Errorf("%s: %w", o.title(), errGone)
		}
		p, err := weave.Read(found)
		if err != nil {
			return true, err
		}
		return false, o.state(p, screen, &first)
	})
}

func (o *GetOptions) state(p *weave.Pipeline, screen *output.Screen, first *bool) error {
	lines := show(p, o.Wide, time.Now())
	if screen != nil {
		rows := screen.Rows()
		return screen.Draw(lines[:min(len(lines), rows)])
	}
	if !*first {
		lines = append([]string{""}, lines...)
	}
	*first = false
	return printLines(o.Out, lines)
}
