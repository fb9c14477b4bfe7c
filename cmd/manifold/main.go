// Command manifold is one Kubernetes API in front of many clusters: the server and everything one does with it.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	componentcli "k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	// Users' kubeconfigs may name the providers of credentials that client-go has built in.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"github.com/manifold-dev/manifold/pkg/cli"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
	"github.com/manifold-dev/manifold/pkg/delivery/render/confined"
)

func main() {
	// The server starts this program once more to render files of strangers, which may have nothing of what follows.
	if confined.Asked() {
		confined.Main()
	}
	// And once more for each plugin, which that process becomes.
	if process.Asked() {
		process.Main()
	}
	// Plugins and preferences of kubectl are read while the tree is built, before flags are parsed.
	cmdutil.CheckErr(setVerbosity(os.Args))

	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := cli.NewCommand(streams, os.Args)
	root.SetContext(context.Background())
	if err := componentcli.RunNoErrOutput(root); err != nil {
		cmdutil.CheckErr(err)
	}
}

func setVerbosity(args []string) error {
	_, err := logs.GlogSetter(cmd.GetLogVerbosity(args))
	return err
}
