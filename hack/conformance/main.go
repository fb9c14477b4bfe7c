// Command conformance runs Kubernetes' own [Conformance] specs against a logical cluster over two stock clusters and compares with what
// passes on one stock cluster. What passes there and fails here is a bug, or has its reason in docs/conformance.md.
//
// What passes on a stock cluster is written down in stock.txt, as it changes with the Kubernetes version alone; -side=both finds out
// again. Specs that need real containers pass on neither, since the pods of stock clusters only pretend to run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// options are the flags.
type options struct {
	side        string
	focus, skip string
	procs       int
	specTimeout time.Duration
	timeout     time.Duration
	attempts    int
	manifold    string
	dir         string
	nodes       int
}

// Values of -side.
const (
	sideLogical = "logical"
	sideStock   = "stock"
	sideBoth    = "both"
)

func main() {
	var o options
	flag.StringVar(&o.side, "side", sideLogical,
		"logical runs what stock.txt lists against a logical cluster, stock renews stock.txt, both does one after the other")
	flag.StringVar(&o.focus, "focus", "", "run only specs whose name this regular expression finds")
	flag.StringVar(&o.skip, "skip", "", "leave out specs whose name this regular expression finds")
	flag.IntVar(&o.procs, "procs", 4, "specs that run at the same time")
	flag.DurationVar(&o.specTimeout, "spec-timeout", 8*time.Minute, "how long a spec may take")
	flag.DurationVar(&o.timeout, "timeout", 6*time.Hour, "how long the specs of one side may take in all")
	flag.IntVar(&o.attempts, "attempts", 1, "how often a spec may be tried until it passes")
	flag.StringVar(&o.manifold, "manifold", "bin/manifold", "the binary to run")
	flag.IntVar(&o.nodes, "nodes", 1, "nodes of each cluster below the logical one: it shows a cluster as one node")
	flag.StringVar(&o.dir, "dir", filepath.Join("_output", "conformance"), "folder of clusters, logs and results")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // watches that end with their server are no news here

	if o.side != sideLogical && o.side != sideStock && o.side != sideBoth {
		return fmt.Errorf("-side is %q, want %s, %s or %s", o.side, sideLogical, sideStock, sideBoth)
	}
	filter, err := newFilter(o.focus, o.skip)
	if err != nil {
		return err
	}
	root, err := tools.Root()
	if err != nil {
		return err
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return fmt.Errorf("find the folder -dir: %w", err)
	}
	lock, err := stock.LockDir(o.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := tools.BuildConformance(ctx, root, os.Stdout); err != nil {
		return err
	}
	bin, err := tools.Build(ctx, root, os.Stdout)
	if err != nil {
		return err
	}
	r := &runner{options: o, filter: filter, root: root, bin: bin}
	return r.run(ctx)
}

// filter says which specs are wanted by their names.
type filter struct {
	focus, skip *regexp.Regexp
}

func newFilter(focus, skip string) (f filter, err error) {
	if f.focus, err = regexp.Compile(focus); err != nil {
		return f, fmt.Errorf("read -focus: %w", err)
	}
	if f.skip, err = regexp.Compile(skip); err != nil {
		return f, fmt.Errorf("read -skip: %w", err)
	}
	return f, nil
}

func (f filter) wants(name string) bool {
	return f.focus.MatchString(name) && (f.skip.String() == "" || !f.skip.MatchString(name))
}

// errDiffers is that a spec passes on stock and fails on logical, and nobody has said why.
var errDiffers = errors.New("specs that pass on a stock cluster do not pass on the logical one, and docs/conformance.md does not say why")
