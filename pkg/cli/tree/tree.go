// Package tree holds the command that shows an object with all that belongs to it: what it owns, what it needs and what leads to it, in
// which clusters each is, and how it fares.
//
// It reads the logical cluster alone. What goes along with what is told by the functions that syncers ask.
package tree

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/target"
)

// widest is how many columns a text may take where nobody knows the width of the screen.
const widest = 120

// Options are what "tree" needs.
type Options struct {
	genericiooptions.IOStreams

	// Output is the format.
	Output output.Format
	// All shows each pod and each old revision instead of their number.
	All bool

	find     target.Finder
	gatherer gatherer
}

// NewCommand returns "tree".
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:                   "tree (KIND/NAME | KIND NAME) [-n NAMESPACE] [--all] [-o json|yaml]",
		DisableFlagsInUseLine: true,
		Short:                 "Show an object, what belongs to it, and where it is",
		Long: templates.LongDesc(`
			Show an object with what it owns, what it needs and what leads to it, in which clusters each of these is, how many are
			ready, and what is wrong.

			Pods are counted by cluster, and old revisions as a whole, unless --all lists each. A "!" marks what needs somebody's
			attention. What the object needs and nobody has made is listed as missing.

			The root may be any object: of a ConfigMap or a Service the tree shows what needs it or what it leads to. Of an Application it
			shows what each cluster runs, the release that is on its way, and the objects of each variant.`),
		Example: templates.Examples(`
			# A Deployment with its pods, configuration, Services, Ingresses and autoscaler
			manifold tree deployment/web -n shop

			# Each pod
			manifold tree statefulset/db --all

			# An application in all of its clusters
			manifold tree application/web

			# Who needs a Secret
			manifold tree secret/token

			# For a script
			manifold tree deployment/web -o json`),
		ValidArgsFunction: completion.ResourceTypeAndNameCompletionFunc(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(f, cmd, args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddFlag(cmd)
	cmd.Flags().BoolVar(&o.All, "all", o.All, "List every pod and every old revision instead of counting them.")
	return cmd
}

// Complete takes the arguments and finds the logical cluster.
func (o *Options) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	var err error
	o.find, err = target.Of(f, cmd, args, "one object is required, as KIND/NAME or KIND NAME", "a tree has one root, but these are %d objects")
	if err != nil {
		return err
	}
	o.gatherer, err = newGatherer(f)
	return err
}

// newGatherer returns what reads from the logical cluster.
func newGatherer(f cmdutil.Factory) (out gatherer, err error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return out, err
	}
	// Nobody asked for each of the kinds that are listed, so nobody is to be warned that one of them is deprecated.
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if out.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return out, err
	}
	if out.metadata, err = metadata.NewForConfig(config); err != nil {
		return out, err
	}
	out.mapper, err = f.ToRESTMapper()
	return out, err
}

// Of returns the tree of an object for other commands, without every pod and old revision.
func Of(ctx context.Context, f cmdutil.Factory, root *unstructured.Unstructured) (*Node, error) {
	from, err := newGatherer(f)
	if err != nil {
		return nil, err
	}
	objects, err := from.gather(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("tree of %s %s: %w", root.GetKind(), root.GetName(), err)
	}
	return grow(objects, false), nil
}

// Write writes the tree for people.
func (n *Node) Write(out io.Writer) error { return n.text(out, output.Width(out, widest)) }

// Run shows the tree.
func (o *Options) Run(ctx context.Context) error {
	root, _, err := o.find()
	if err != nil {
		return err
	}
	objects, err := o.gatherer.gather(ctx, root)
	if err != nil {
		return fmt.Errorf("tree of %s %s: %w", root.GetKind(), root.GetName(), err)
	}
	return grow(objects, o.All).print(o.Out, o.Output, output.Width(o.Out, widest))
}
