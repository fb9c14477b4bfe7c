// Package simulate holds the command that says where workloads would run.
//
// It reads manifests and calls the function that the server decides by, so that a policy, a new cluster or the loss of one can be tried
// before it happens.
package simulate

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// Options are what "simulate" needs.
type Options struct {
	genericiooptions.IOStreams

	// Files hold the manifests.
	Files resource.FilenameOptions
	// Snapshot is a file with clusters; empty asks the logical cluster for its own.
	Snapshot string
	// Without are clusters that are lost once everything is placed.
	Without []string
	// Output is the format.
	Output output.Format

	factory   cmdutil.Factory
	namespace string
}

// NewCommand returns "simulate".
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, factory: f}
	cmd := &cobra.Command{
		Use:                   "simulate -f FILENAME [--clusters FILENAME] [--without CLUSTER]... [-o json|yaml]",
		DisableFlagsInUseLine: true,
		Short:                 "Say where workloads would run",
		Long: templates.LongDesc(`
			Say where the workloads of manifests would run, by the function that the server decides by, and change nothing.

			The manifests may hold policies and namespaces beside workloads. The clusters are those of the logical cluster with its
			policies, or those of a file that "kubectl get clusters -o yaml" has written; policies may be in it as well. Without any
			ClusterPlacementPolicy the one counts that a new logical cluster starts with.

			With --without, the clusters named are lost once everything is placed, and what that leads to is shown.`),
		Example: templates.Examples(`
			# Where an application would run
			manifold simulate -f app/

			# The same without a logical cluster at hand
			kubectl get clusters,clusterplacementpolicies -o yaml > clusters.yaml
			manifold simulate -f app/ --clusters clusters.yaml

			# What a policy makes of the loss of a cluster
			manifold simulate -f app/ -f policy.yaml --without east`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.Files.Filenames, "filename", "f", nil, "Files or directories with the manifests, or - for standard input.")
	flags.BoolVarP(&o.Files.Recursive, "recursive", "R", false, "Read directories with all that is in them.")
	flags.StringVar(&o.Snapshot, "clusters", "", "File with the clusters, in place of those of the logical cluster.")
	flags.StringSliceVar(&o.Without, "without", nil, "Clusters that are lost.")
	o.Output.AddFlag(cmd)
	return cmd
}

func (o *Options) complete(cmd *cobra.Command) (err error) {
	if len(o.Files.Filenames) == 0 {
		return cmdutil.UsageErrorf(cmd, "manifests are required, as -f FILENAME")
	}
	o.namespace, _, err = o.factory.ToRawKubeConfigLoader().Namespace()
	return err
}

// Run simulates and prints.
func (o *Options) Run(ctx context.Context) error {
	w := &world{namespace: o.namespace}
	var err error
	if o.Snapshot != "" {
		err = o.read(resource.FilenameOptions{Filenames: []string{o.Snapshot}}, w)
	} else {
		err = o.ask(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("read the clusters: %w", err)
	}
	if err := o.read(o.Files, w); err != nil {
		return err
	}
	report, err := w.simulate(o.Without)
	if err != nil {
		return err
	}
	return report.print(o.Out, o.Output)
}

// read adds what files hold.
func (o *Options) read(files resource.FilenameOptions, w *world) error {
	infos, err := o.factory.NewBuilder().Unstructured().Local().FilenameParam(false, &files).Flatten().Do().Infos()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if err := w.add(info.Object); err != nil {
			return fmt.Errorf("%s: %w", info.Source, err)
		}
	}
	return nil
}

// ask adds clusters, policies of all namespaces and policies of namespaces from the logical cluster.
func (o *Options) ask(ctx context.Context, w *world) error {
	config, err := o.factory.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	api := client.ManifoldV1alpha1()
	clusters, err := api.Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	wide, err := api.ClusterPlacementPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	namespaced, err := api.PlacementPolicies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.clusters, w.wide, w.namespaced = clusters.Items, wide.Items, namespaced.Items
	w.served = true
	return nil
}
