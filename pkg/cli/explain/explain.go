// Package explain holds the command that says where an object runs and why.
//
// It gathers what the server decides by and calls the function that admission calls, so what it prints is what is done.
package explain

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/target"
)

// Options are what "explain" needs.
type Options struct {
	genericiooptions.IOStreams

	// Output is the format.
	Output output.Format
	// Cluster asks for what one cluster holds of the object.
	Cluster string

	find     target.Finder
	gatherer gatherer
}

// NewCommand returns "explain".
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:                   "explain (KIND/NAME | KIND NAME) [-n NAMESPACE] [--cluster CLUSTER] [-o json|yaml]",
		DisableFlagsInUseLine: true,
		Short:                 "Say where an object runs and why",
		Long: templates.LongDesc(`
			Say on which clusters an object runs, how it fares on each, which pin or policy led to that, and for every cluster
			whether it could take more or why not.

			While it is on its way to what was decided, also say what each cluster runs of it, and what holds it back.

			The verdicts are those of this moment, found by the function that the server decides by.`),
		Example: templates.Examples(`
			# Why a Deployment runs where it runs
			manifold explain deployment/web

			# The same in another namespace, for a script
			manifold explain deployment/web -n shop -o json

			# What the policy changes of it in one cluster, and the object that the cluster holds then
			manifold explain deployment/web --cluster east
			manifold explain deployment/web --cluster east -o yaml`),
		ValidArgsFunction: target.CompleteWorkload(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(f, cmd, args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddFlag(cmd)
	cmd.Flags().StringVar(&o.Cluster, "cluster", o.Cluster, "Show what this cluster holds of the object, and what a policy overrides there.")
	return cmd
}

// Complete takes the arguments and finds the logical cluster.
func (o *Options) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	var err error
	o.find, err = target.Of(f, cmd, args, "one object is required, as KIND/NAME or KIND NAME", "only one object can be explained at a time, not %d")
	if err != nil {
		return err
	}
	config, err := f.ToRESTConfig()
	if err != nil {
		return err
	}
	if o.gatherer.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if o.gatherer.manifold, err = versioned.NewForConfig(config); err != nil {
		return err
	}
	o.gatherer.fleet = fleetOf(o.gatherer.client.Discovery().RESTClient())
	o.gatherer.versions = func(kind schema.GroupKind) []string { return versionsOf(f, kind) }
	return nil
}

// versionsOf returns the versions in which the logical cluster serves a kind, the preferred one first, none if that cannot be told.
func versionsOf(f cmdutil.Factory, kind schema.GroupKind) []string {
	mapper, err := f.ToRESTMapper()
	if err != nil {
		return nil
	}
	mappings, err := mapper.RESTMappings(kind)
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range mappings {
		out = append(out, m.GroupVersionKind.Version)
	}
	return out
}

// Run explains the object.
func (o *Options) Run(ctx context.Context) error {
	object, _, err := o.find()
	if err != nil {
		return err
	}
	if o.Cluster != "" {
		held, err := o.gatherer.hold(ctx, object, o.Cluster)
		if err != nil {
			return fmt.Errorf("explain %s %s in cluster %q: %w", object.GetKind(), object.GetName(), o.Cluster, err)
		}
		return held.print(o.Out, o.Output)
	}
	observed, err := o.gatherer.gather(ctx, object)
	if err != nil {
		return fmt.Errorf("explain %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	report, err := explain(observed)
	if err != nil {
		return fmt.Errorf("explain %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return report.print(o.Out, o.Output)
}
