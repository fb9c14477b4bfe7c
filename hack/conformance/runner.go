package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/logical"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// runner runs one side after the other.
type runner struct {
	options
	filter filter
	root   string
	bin    string
}

func (r *runner) run(ctx context.Context) error {
	golden := filepath.Join(r.root, "hack", "conformance", "stock.txt")
	passing, err := readNames(golden)
	if err != nil {
		return err
	}
	var report report
	if r.side != sideLogical {
		if report.Stock, err = r.runStock(ctx); err != nil {
			return err
		}
		passing = renew(passing, report.Stock)
		if err := writeNames(golden, passing); err != nil {
			return err
		}
	}
	if r.side != sideStock && ctx.Err() == nil {
		if report.Logical, err = r.runLogical(ctx, r.wanted(passing)); err != nil {
			return err
		}
	}
	known, err := os.ReadFile(filepath.Join(r.root, "docs", "conformance.md"))
	if err != nil {
		return fmt.Errorf("read the known differences: %w", err)
	}
	report.Differences, report.Outdated = differences(passing, report.Logical, string(known)), outdated(report.Logical, string(known))
	if err := report.write(filepath.Join(r.dir, "report.json")); err != nil {
		return err
	}
	report.print(os.Stdout)
	if ctx.Err() != nil {
		return errors.New("interrupted, so this is not all")
	}
	if report.unexplained() > 0 {
		return errDiffers
	}
	return nil
}

func (r *runner) wanted(names []string) []string {
	var wanted []string
	for _, name := range names {
		if r.filter.wants(name) {
			wanted = append(wanted, name)
		}
	}
	return wanted
}

// runStock runs all specs against one stock cluster.
func (r *runner) runStock(ctx context.Context) (results []result, err error) {
	fmt.Println("\n==> The specs on a stock cluster")
	cluster, err := stock.Start(ctx, r.cluster("stock", stockNodes))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	s := r.suite(sideStock, cluster.Kubeconfig())
	s.focus, s.skip = r.focus, r.skip
	return s.run(ctx)
}

// runLogical runs the named specs against a logical cluster over two stock clusters.
func (r *runner) runLogical(ctx context.Context, names []string) (results []result, err error) {
	fmt.Printf("\n==> %d specs on a logical cluster over two stock clusters\n", len(names))
	if len(names) == 0 {
		return nil, nil
	}
	clusters, err := stock.StartAll(ctx, r.cluster("east", r.nodes), r.cluster("west", r.nodes))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stock.StopAll(clusters)) }()
	dir := filepath.Join(r.dir, "manifold")
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("remove the data of an earlier run: %w", err)
	}
	server, err := logical.Start(ctx, logical.Options{Binary: filepath.Join(r.root, r.manifold), Dir: dir})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	for _, c := range clusters {
		if err := server.Join(ctx, c); err != nil {
			return nil, err
		}
	}
	s := r.suite(sideLogical, server.Kubeconfig())
	s.focus = exactly(names)
	return s.run(ctx)
}

// stockNodes is how many nodes the single cluster has.
const stockNodes = 3

func (r *runner) cluster(name string, nodes int) stock.Options {
	return stock.Options{Name: name, Dir: filepath.Join(r.dir, name), BinDir: r.bin, Nodes: nodes, Progress: os.Stdout}
}

func (r *runner) suite(side, kubeconfig string) *suite {
	return &suite{
		ginkgo:      filepath.Join(r.bin, tools.Ginkgo),
		binary:      filepath.Join(r.bin, tools.E2ETest),
		kubectl:     filepath.Join(r.bin, tools.Kubectl),
		kubeconfig:  kubeconfig,
		dir:         filepath.Join(r.dir, side+"-results"),
		procs:       r.procs,
		attempts:    r.attempts,
		specTimeout: r.specTimeout,
		timeout:     r.timeout,
	}
}
