// Command clusters starts stock Kubernetes clusters on this machine and keeps them up until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

func main() {
	names := flag.String("names", "east,west", "names of the clusters, separated by commas")
	nodes := flag.Int("nodes", 3, "nodes of each cluster")
	flag.Parse()
	if err := run(strings.Split(*names, ","), *nodes); err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

func run(names []string, nodes int) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := tools.Root()
	if err != nil {
		return err
	}
	bin, err := tools.Build(ctx, root, os.Stdout)
	if err != nil {
		return err
	}
	var options []stock.Options
	for _, name := range names {
		options = append(options, stock.Options{
			Name:     name,
			Dir:      filepath.Join(root, "_output", "clusters", name),
			BinDir:   bin,
			Nodes:    nodes,
			Metrics:  true,
			Progress: os.Stdout,
		})
	}
	clusters, err := stock.StartAll(ctx, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()

	fmt.Println()
	for _, c := range clusters {
		fmt.Printf("export KUBECONFIG=%s\n", c.Kubeconfig())
	}
	fmt.Printf("\nStock kubectl is %s. Ctrl-C stops the clusters.\n", filepath.Join(bin, tools.Kubectl))
	return stock.Wait(ctx, clusters)
}
