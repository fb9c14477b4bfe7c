// Package release holds the commands that show releases of applications, follow them, and ask something of them.
package release

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/logical"
)

// resource is how the kind is asked for, in full, so that no other group's "releases" is meant.
const resource = "releases." + v1alpha1.GroupName

// NewCommand returns "release" with its subcommands.
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "release COMMAND",
		Aliases: []string{"releases", "rel"},

		DisableFlagsInUseLine: true,

		Short: "Show, follow, approve, cancel and retry releases of applications",
		Long: templates.LongDesc(`
			Show releases of applications, follow them, and ask something of them. A release is one deployment of one revision of an
			application; "manifold app sync" makes one.`),
		Example: templates.Examples(`
			# See what there is
			manifold release list

			# Follow one until it has ended
			manifold release watch web-x2f

			# Agree that it goes on
			manifold release approve web-x2f --comment "looks good"

			# End it, and take back what it has done
			manifold release cancel web-x2f --rollback`),
		Args: cobra.NoArgs,
		Run:  cmdutil.DefaultSubCommandRun(streams.ErrOut),
	}
	cmd.AddCommand(
		newListCommand(f, streams),
		newGetCommand(f, streams),
		newWatchCommand(f, streams),
		newLogsCommand(f, streams),
		newApproveCommand(f, streams),
		newCancelCommand(f, streams),
		newSkipCommand(f, streams),
		newRetryCommand(f, streams),
	)
	return cmd
}

// subject is the release that a command is about.
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

func (s *subject) releases() deliveryclient.ReleaseInterface {
	return s.client.DeliveryV1alpha1().Releases(s.Namespace)
}

// title names the release as kubectl names objects.
func (s *subject) title() string { return fmt.Sprintf("release/%s", s.Name) }

// completeOne offers the names of releases for commands that are about one.
func completeOne(f cmdutil.Factory) cobra.CompletionFunc { return listing.CompleteOne(f, resource) }
