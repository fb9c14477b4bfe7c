package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// versionOptions are what "version" needs.
type versionOptions struct {
	genericiooptions.IOStreams

	clientOnly bool
	output     output.Format
	// server is nil if no server is asked.
	server discovery.ServerVersionInterface
}

// versions is what "version" prints, named as kubectl names it.
type versions struct {
	Client apimachineryversion.Info  `json:"clientVersion"`
	Server *apimachineryversion.Info `json:"serverVersion,omitempty"`
}

func newVersionCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &versionOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use: "version [--client] [-o json|yaml]",

		DisableFlagsInUseLine: true,

		Short: "Print the versions of this program and of the server",
		Long:  templates.LongDesc(`Print the versions of this program and of the server.`),
		Example: templates.Examples(`
			# Both
			manifold version

			# This program's alone, for a script
			manifold version --client -o json`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if err := o.complete(f); err != nil {
				return err
			}
			return o.run()
		},
	}
	cmd.Flags().BoolVar(&o.clientOnly, "client", o.clientOnly, "Print only the version of this program, without asking the server.")
	o.output.AddFlag(cmd)
	return cmd
}

func (o *versionOptions) complete(f cmdutil.Factory) error {
	if o.clientOnly {
		return nil
	}
	client, err := f.ToDiscoveryClient()
	if clientcmd.IsEmptyConfig(err) {
		return nil
	}
	if err != nil {
		return err
	}
	client.Invalidate()
	o.server = client
	return nil
}

// run prints this program's version even if the server does not answer.
func (o *versionOptions) run() error {
	found := versions{Client: version.Get()}
	var serverErr error
	if o.server != nil {
		found.Server, serverErr = o.server.ServerVersion()
	}
	if err := o.print(found); err != nil {
		return err
	}
	return serverErr
}

func (o *versionOptions) print(found versions) error {
	return o.output.Print(o.Out, found, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "Client Version: %s\n", found.Client.GitVersion)
		if err == nil && found.Server != nil {
			_, err = fmt.Fprintf(out, "Server Version: %s\n", found.Server.GitVersion)
		}
		return err
	})
}
