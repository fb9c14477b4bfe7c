// Command demo shows Manifold in a terminal: it runs a logical cluster in front of two stock clusters, applies the sample
// application, shows where it runs, and stays up until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/logical"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is what runs.
type demo struct {
	root string
	bin  string
	// metrics tells that metrics-server has been built, as "make tools" does.
	metrics  bool
	server   *logical.Server
	clusters []*stock.Cluster
}

func run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{}
	if d.root, err = tools.Root(); err != nil {
		return err
	}
	lock, err := stock.LockDir(d.dir())
	if err != nil {
		return err
	}
	defer lock.Close()
	step("The stock programs")
	if d.bin, d.metrics, err = tools.BuildWithoutMetrics(ctx, d.root, os.Stdout); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return d.unlessInterrupted(ctx, err)
	}
	if err := d.show(ctx); err != nil {
		return d.unlessInterrupted(ctx, err)
	}
	d.invite()
	return d.wait(ctx)
}

// unlessInterrupted forgets errors that come from being told to end.
func (d *demo) unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (d *demo) dir() string {
	return filepath.Join(d.root, "_output", "demo")
}

func (d *demo) serverDir() string {
	return filepath.Join(d.dir(), "manifold")
}

// start starts the logical cluster and the stock clusters at the same time, and joins these.
func (d *demo) start(ctx context.Context) error {
	step("Start a logical cluster, and two stock clusters, east and west")
	if err := os.RemoveAll(d.serverDir()); err != nil {
		return fmt.Errorf("remove what an earlier demo left: %w", err)
	}
	if err := d.redirectLogs(); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		d.server, err = logical.Start(groupCtx, logical.Options{
			Binary: filepath.Join(d.root, "bin", "manifold"), Dir: d.serverDir(),
		})
		if err == nil {
			fmt.Printf("logical cluster: ready after %.1fs\n", d.server.Took().Seconds())
		}
		return err
	})
	group.Go(func() (err error) {
		d.clusters, err = stock.StartAll(groupCtx, d.cluster("east"), d.cluster("west"))
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	step("Join the clusters")
	for _, c := range d.clusters {
		args := []string{"cluster", "join", c.Name(), "--cluster-kubeconfig", c.Kubeconfig(), "--wait"}
		if err := d.manifold(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) cluster(name string) stock.Options {
	return stock.Options{Name: name, Dir: filepath.Join(d.dir(), name), BinDir: d.bin, Metrics: d.metrics, Progress: os.Stdout}
}

// redirectLogs keeps what the libraries of this process log out of the terminal.
func (d *demo) redirectLogs() error {
	file, err := os.Create(filepath.Join(d.dir(), "demo.log"))
	if err != nil {
		return fmt.Errorf("make the log of the demo: %w", err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(file)
	log.SetOutput(file)
	return nil
}

// show applies the sample and shows what becomes of it.
func (d *demo) show(ctx context.Context) error {
	step("Apply an application whose Deployment asks for both clusters")
	if err := d.kubectl(ctx, "apply", "-f", filepath.Join("config", "samples", "shop")); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "-n", "shop", "rollout", "status", "deployment/web", "--timeout=2m"); err != nil {
		return err
	}
	step("One cluster to look at")
	if err := d.kubectl(ctx, "get", "clusters,nodes", "-o", "wide"); err != nil {
		return err
	}
	return d.kubectl(ctx, "-n", "shop", "get", "deployments,replicasets,pods,services", "-o", "wide")
}

func (d *demo) kubectl(ctx context.Context, args ...string) error {
	return d.manifold(ctx, append([]string{"kubectl"}, args...)...)
}

// manifold runs a command as the user would, and shows it.
func (d *demo) manifold(ctx context.Context, args ...string) error {
	cmd := d.server.Command(ctx, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.root, os.Stdout, os.Stderr
	// Ctrl-C reaches it as well, since it is in the terminal's process group; otherwise it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	fmt.Printf("$ manifold%s\n", quoted(args))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("manifold%s: %w", quoted(args), err)
	}
	return nil
}

func quoted(args []string) string {
	var line string
	for _, arg := range args {
		line += " " + arg
	}
	return line
}

// invite prints what to try.
func (d *demo) invite() {
	step("Try it in another terminal, with stock kubectl")
	fmt.Printf(`
  export PATH=%s:%s:$PATH
  export KUBECONFIG=%s
`, filepath.Join(d.root, "bin"), d.bin, d.server.Kubeconfig())
	fmt.Print(`
  kubectl -n shop get pods -o wide
  manifold explain deployment/web -n shop
  kubectl -n shop scale deployment/web --replicas=9
  kubectl -n shop logs deployment/web
  kubectl -n shop exec deployment/web -- sh -c 'echo $GREETING from $CLUSTER'
  kubectl -n shop port-forward deployment/web 8080:80
  kubectl -n shop set image deployment/web web=nginx:1.30 && kubectl -n shop rollout status deployment/web
  manifold cluster cordon west
  kubectl create deployment hello --image=nginx && kubectl get pods -o wide

`)
	fmt.Println("The clusters themselves:")
	for _, c := range d.clusters {
		fmt.Printf("  kubectl --kubeconfig %s get pods -A -o wide\n", c.Kubeconfig())
	}
	fmt.Printf("\nLogs are in %s. Ctrl-C ends the demo.\n", d.dir())
}

// wait returns when the user wants the demo to end, or with an error when something has ended by itself.
func (d *demo) wait(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return stock.Wait(ctx, d.clusters) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-d.server.Process().Exited():
			return fmt.Errorf("the logical cluster, whose log is %s, ended: %w", d.server.LogFile(), d.server.Process().Err())
		}
	})
	return group.Wait()
}

func (d *demo) stop() error {
	fmt.Println()
	step("Stop")
	var err error
	if d.server != nil {
		err = d.server.Stop()
	}
	return errors.Join(err, stock.StopAll(d.clusters))
}

func step(what string) {
	fmt.Printf("\n==> %s\n", what)
}
