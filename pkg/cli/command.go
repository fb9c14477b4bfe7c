// Package cli is the command tree of the one binary: the server, the clusters, and kubectl with all it can do.
package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/pkg/cli/app"
	"github.com/manifold-dev/manifold/pkg/cli/cluster"
	"github.com/manifold-dev/manifold/pkg/cli/explain"
	"github.com/manifold-dev/manifold/pkg/cli/kubeconfig"
	"github.com/manifold-dev/manifold/pkg/cli/move"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/pipeline"
	"github.com/manifold-dev/manifold/pkg/cli/plugin"
	"github.com/manifold-dev/manifold/pkg/cli/release"
	"github.com/manifold-dev/manifold/pkg/cli/simulate"
	"github.com/manifold-dev/manifold/pkg/cli/start"
	"github.com/manifold-dev/manifold/pkg/cli/tree"
	versionscommand "github.com/manifold-dev/manifold/pkg/cli/versions"
)

// pluginName is the name under which kubectl finds the binary as its plugin.
const pluginName = "kubectl-manifold"

// NewCommand returns the tree of commands. args are those of the process, its name first: it decides how usage lines begin, and
// kubectl looks in them for its plugins.
func NewCommand(streams genericiooptions.IOStreams, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "manifold COMMAND",
		Short: "One Kubernetes API in front of many clusters",
		Long: templates.LongDesc(`
			One Kubernetes API in front of many clusters.

			You apply plain workloads to a logical cluster. Manifold decides where they run, projects them onto physical clusters,
			keeps them there, and shows one status with its pods, logs and events, as if it were one cluster.`),
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: displayName(args)},
		Args:        cobra.NoArgs,

		DisableFlagsInUseLine: true,

		Run: func(cmd *cobra.Command, _ []string) { cmdutil.CheckErr(cmd.Help()) },
	}
	raw := streams // kubectl's: a session in a container draws on the terminal
	streams = output.Escaped(raw)
	cmdutil.BehaviorOnFatal(func(message string, code int) { fail(streams.ErrOut, message, code) })
	config := configFlags(streams)
	config.AddFlags(root.PersistentFlags())
	f := cmdutil.NewFactory(config)

	groups := templates.CommandGroups{
		{Message: "Server Commands:", Commands: []*cobra.Command{start.NewCommand(streams)}},
		{Message: "Cluster Commands:", Commands: []*cobra.Command{
			cluster.NewCommand(f, streams), explain.NewCommand(f, streams), kubeconfig.NewCommand(f, streams), move.NewCommand(f, streams),
			simulate.NewCommand(f, streams), tree.NewCommand(f, streams),
		}},
		{Message: "Delivery Commands:", Commands: []*cobra.Command{
			app.NewCommand(f, streams), release.NewCommand(f, streams), pipeline.NewCommand(f, streams), plugin.NewCommand(f, streams), versionscommand.NewCommand(f, streams),
		}},
		{Message: "Kubernetes Commands:", Commands: []*cobra.Command{newKubectlCommand(raw, args)}},
	}
	groups.Add(root)
	root.AddCommand(newVersionCommand(f, streams), newOptionsCommand(streams.Out))
	templates.ActsAsRootCommand(root, []string{"options"}, groups...)
	completeConfigFlags(root, f)
	if display := displayName(args); display != root.Name() {
		renameExamples(root, root.Name(), display)
	}
	return root
}

// fail ends the process with an error's message, in which a server may say what it likes.
func fail(out io.Writer, message string, code int) {
	if message != "" {
		fmt.Fprintln(out, strings.TrimSuffix(message, "\n"))
	}
	os.Exit(code)
}

// configFlags are the flags of kubectl that lead to an API server, without limits of the client's own.
func configFlags(streams genericiooptions.IOStreams) *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).
		WithDiscoveryQPS(-1).
		WithWarningPrinter(streams).
		WithWrapConfigFn(unthrottled)
}

// unthrottled takes client-go's limit off requests: the API server's priority and fairness knows better.
func unthrottled(c *rest.Config) *rest.Config {
	c.QPS, c.Burst = -1, 0
	return c
}

// displayName is how users call the binary.
func displayName(args []string) string {
	if len(args) > 0 {
		if name := filepath.Base(args[0]); strings.TrimSuffix(name, filepath.Ext(name)) == pluginName {
			return "kubectl manifold"
		}
	}
	return "manifold"
}

// renameExamples makes the examples of Manifold's own commands say what users of the plugin type.
func renameExamples(cmd *cobra.Command, from, to string) {
	for _, sub := range cmd.Commands() {
		if sub.Name() == kubectlName {
			continue
		}
		lines := strings.Split(sub.Example, "\n")
		for i, line := range lines {
			if command, found := strings.CutPrefix(strings.TrimLeft(line, " "), from+" "); found {
				lines[i] = strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))) + to + " " + command
			}
		}
		sub.Example = strings.Join(lines, "\n")
		renameExamples(sub, from, to)
	}
}

func completeConfigFlags(root *cobra.Command, f cmdutil.Factory) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"namespace": func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completion.CompGetResource(f, "namespace", typed), cobra.ShellCompDirectiveNoFileComp
		},
		"context": completion.ContextCompletionFunc,
		"cluster": completion.ClusterCompletionFunc,
		"user":    completion.UserCompletionFunc,
	} {
		cmdutil.CheckErr(root.RegisterFlagCompletionFunc(flag, complete))
	}
}
