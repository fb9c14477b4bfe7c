// Package simulate holds the command that says where workloads would run.
//
// It reads manifests and asks the engine that the server decides by, so that a policy, a new cluster or the loss of one can be tried before
// it happens.
package simulate

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// Options are what "simulate" needs.
type Options struct {
	genericiooptions.IOStreams

	// Files hold the manifests.
	Files resource.FilenameOptions
	// State are files with the state of a logical cluster; none asks the logical cluster itself.
	State []string
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
		Use:                   "simulate [-f FILENAME | -k DIRECTORY] [--clusters FILENAME] [--without CLUSTER]... [-o json|yaml]",
		DisableFlagsInUseLine: true,
		Short:                 "Say where workloads would run",
		Long: templates.LongDesc(`
			Say where workloads would run, by the function that the server decides by, and change nothing.

			The manifests may hold policies, namespaces, PriorityClasses and volume claims beside workloads. They take the place of what
			there is of the same name, as if they were applied. What there is, is what the logical cluster holds, or what a file does
			that "kubectl get -o yaml" has written: clusters, policies, and as far as they matter workloads, namespaces, PriorityClasses,
			claims, storage classes, and pods. Without any ClusterPlacementPolicy in a file the one counts that a new logical cluster
			starts with.

			Decisions are followed until all has come to run, so what moves out of the way of something else is shown where it ends up.
			All workloads of the manifests are told of, and of others those that would move.

			With --without, the clusters named fall silent once everything is placed, for longer than anybody tolerates, and what that
			leads to is shown.`),
		Example: templates.Examples(`
			# Where an application would run
			manifold simulate -f app/

			# The same without a logical cluster at hand
			kubectl get clusters,clusterplacementpolicies,placementpolicies,namespaces,priorityclasses,deployments -A -o yaml > state.yaml
			manifold simulate -f app/ --clusters state.yaml

			# What another policy would move of all that runs there
			manifold simulate -f policy.yaml --clusters state.yaml

			# What the loss of a cluster would lead to
			manifold simulate --clusters state.yaml --without east`),
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
	flags.StringVarP(&o.Files.Kustomize, "kustomize", "k", "", "Directory with a kustomization that makes the manifests.")
	flags.BoolVarP(&o.Files.Recursive, "recursive", "R", false, "Read directories with all that is in them.")
	flags.StringSliceVar(&o.State, "clusters", nil, "Files with clusters and what else there is, in place of those of the logical cluster.")
	flags.StringSliceVar(&o.Without, "without", nil, "Clusters that are lost.")
	o.Output.AddFlag(cmd)
	return cmd
}

func (o *Options) complete(cmd *cobra.Command) (err error) {
	if len(o.Files.Filenames)+len(o.State)+len(o.Without) == 0 && o.Files.Kustomize == "" {
		return cmdutil.UsageErrorf(cmd, "manifests are required, as -f FILENAME, or something else to try: --clusters or --without")
	}
	if slices.Contains(o.Files.Filenames, "-") && slices.Contains(o.State, "-") {
		return cmdutil.UsageErrorf(cmd, "-f and --clusters cannot both read standard input")
	}
	o.namespace, _, err = o.factory.ToRawKubeConfigLoader().Namespace()
	return err
}

// Run simulates and prints.
func (o *Options) Run(ctx context.Context) error {
	w := newWorld(o.namespace)
	var err error
	if len(o.State) > 0 {
		err = o.read(resource.FilenameOptions{Filenames: o.State}, w.keep)
	} else {
		w.served = true
		err = o.ask(w.keep)
	}
	if err != nil {
		return fmt.Errorf("read the clusters: %w", err)
	}
	if len(o.Files.Filenames) > 0 || o.Files.Kustomize != "" {
		if err := o.read(o.Files, w.apply); err != nil {
			return fmt.Errorf("read the manifests: %w", err)
		}
	}
	report, err := w.simulate(ctx, o.Without)
	if err != nil {
		return err
	}
	return report.print(o.Out, o.Output)
}
