// Command buildtools builds the stock programs that the test clusters run, as far as they are missing or not as pinned.
package main

import (
	"context"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := tools.Root()
	if err != nil {
		return err
	}
	_, err = tools.Build(ctx, root, os.Stdout)
	return err
}
