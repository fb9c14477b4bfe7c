// Package app holds the commands that show applications, release their revisions, and take releases back.
package app

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/app/insight"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/logical"
)

// resource is how the kind is asked for, in full, so that no other group's "applications" is meant.
const resource = "applications." + v1alpha1.GroupName

// NewCommand returns "app" with its subcommands.
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "app COMMAND",
		Aliases: []string{"apps", "application", "applications"},

		DisableFlagsInUseLine: true,

		Short: "Show applications, release their revisions, and take releases back",
		Long: templates.LongDesc(`
			Show applications, release their revisions, and take releases back. An application is what is delivered together: where its
			manifests come from, the clusters that they go to, and the steps by which a new version reaches them.`),
		Example: templates.Examples(`
			# See what there is
			manifold app list

			# What runs where
			manifold app get web

			# The revisions that there are
			manifold app history web

			# Release the newest revision, and wait until it runs
			manifold app sync web --wait

			# Go back to what ran before
			manifold app rollback web`),
		Args: cobra.NoArgs,
		Run:  cmdutil.DefaultSubCommandRun(streams.ErrOut),
	}
	cmd.AddCommand(
		newListCommand(f, streams),
		newGetCommand(f, streams),
		newHistoryCommand(f, streams),
		newPlanCommand(f, streams),
		newDiffCommand(f, streams),
		newSyncCommand(f, streams),
		newRollbackCommand(f, streams),
		newImportCommand(f, streams),
		insight.NewCommand(f, streams, listing.Complete(f, resource, listing.Everything)),
	)
	return cmd
}

// subject is the application that a command is about.
type subject struct {
	Namespace, Name string

	client versioned.Interface
}

// complete takes the one name on the command line, and finds the logical cluster.
func (s *subject) complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cmdutil.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
	}
	s.Name = args[0]
	var err error
	s.Namespace, s.client, err = logical.Typed(f)
	return err
}

func (s *subject) delivery() deliveryclient.DeliveryV1alpha1Interface {
	return s.client.DeliveryV1alpha1()
}

func (s *subject) applications() deliveryclient.ApplicationInterface {
	return s.delivery().Applications(s.Namespace)
}

// completeOne offers the names of applications for commands that are about one.
func completeOne(f cmdutil.Factory) cobra.CompletionFunc { return listing.CompleteOne(f, resource) }
