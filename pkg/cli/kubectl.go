package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
)

const kubectlName = "kubectl"

// newKubectlCommand returns the whole of kubectl as a command. It has its own flags, so arguments mean what they mean to
// kubectl. Only a command line that begins with it makes kubectl look for plugins and read its preferences.
func newKubectlCommand(streams genericiooptions.IOStreams, args []string) *cobra.Command {
	options := cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     []string{kubectlName},
		IOStreams:     streams,
		ConfigFlags: genericclioptions.NewConfigFlags(true).
			WithDeprecatedPasswordFlag().
			WithDiscoveryQPS(-1).
			WithWarningPrinter(streams).
			WithWrapConfigFn(unthrottled),
	}
	if len(args) > 1 && args[1] == kubectlName {
		options.Arguments = slices.Clone(args[1:])
	}
	kubectl := cmd.NewDefaultKubectlCommandWithArgs(options)
	kubectl.Short = "Run kubectl, which is built in"
	return kubectl
}
