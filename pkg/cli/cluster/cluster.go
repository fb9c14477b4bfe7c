// Package cluster holds the commands that register, list, check, cordon, drain and remove physical clusters.
package cluster

import (
	"context"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
)

// resource is how the kind is asked for, in full, so that no other group's "clusters" is meant.
const resource = "clusters." + manifoldv1alpha1.GroupName

// NewCommand returns "cluster" with its subcommands.
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster COMMAND",
		Aliases: []string{"clusters"},

		DisableFlagsInUseLine: true,

		Short: "Join, list, check, cordon, drain and remove physical clusters",
		Long: templates.LongDesc(`
			Join, list, check, cordon, drain and remove the physical clusters that workloads run on.

			--kubeconfig and --context lead to the logical cluster, as they do for kubectl.`),
		Example: templates.Examples(`
			# Register a cluster
			manifold cluster join east --cluster-kubeconfig ~/.kube/east

			# See what there is
			manifold cluster list

			# Compare Manifold's rights in a cluster with those that it needs
			manifold cluster check east

			# Keep new replicas away from a cluster, then let them come again
			manifold cluster cordon east
			manifold cluster uncordon east

			# Move everything off a cluster
			manifold cluster drain east

			# Remove what runs there, and its registration
			manifold cluster remove east`),
		Args: cobra.NoArgs,
		Run:  cmdutil.DefaultSubCommandRun(streams.ErrOut),
	}
	cmd.AddCommand(
		newJoinCommand(f, streams),
		newListCommand(f, streams),
		newCheckCommand(f, streams),
		newCordonCommand(f, streams, cordon),
		newCordonCommand(f, streams, uncordon),
		newDrainCommand(f, streams),
		newRotateCommand(f, streams),
		newRevokeCommand(f, streams),
		newRemoveCommand(f, streams),
	)
	return cmd
}

// interruptible returns a context that ends when the user or the system asks the process to stop, so that what was begun can be
// taken back.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// completeClusters offers the names of clusters that are not on the command line yet, up to limit of them.
func completeClusters(f cmdutil.Factory, limit int) cobra.CompletionFunc {
	return listing.Complete(f, resource, limit)
}

// completeContexts offers the contexts of the kubeconfig that *file names.
func completeContexts(file *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		config, err := clientcmd.LoadFromFile(*file)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := slices.Sorted(maps.Keys(config.Contexts))
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
