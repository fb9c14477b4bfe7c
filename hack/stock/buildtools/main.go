// Command buildtools builds the stock programs that the test clusters run, as far as they are missing or not as pinned. With -clients it builds
// Helm, Prometheus, the operators and the plugins that the end-to-end tests run against clusters, with -operators the further ones that "make operators" runs,
// with -gateway the gateway that requests from outside go through, with -gitops the controllers of Flux and the forge that pipelines are tested with.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/manifold-dev/manifold/hack/stock/tools"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run() error {
	clients := flag.Bool("clients", false, "build Helm, Prometheus, the operators and the plugins of the end-to-end tests instead")
	operators := flag.Bool("operators", false, "build the operators that are tested only when asked for instead")
	gateway := flag.Bool("gateway", false, "build the gateway that is tested only when asked for instead")
	gitops := flag.Bool("gitops", false, "build Flux and the forge that are tested only when asked for instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := tools.Root()
	if err != nil {
		return err
	}
	build := tools.Build
	switch {
	case *clients:
		build = tools.BuildClients
	case *operators:
		build = tools.BuildOperators
	case *gateway:
		build = tools.BuildGateway
	case *gitops:
		build = tools.BuildGitOps
	}
	_, err = build(ctx, root, os.Stdout)
	return err
}
