package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/logical"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

// hub is the logical cluster that is measured.
type hub struct {
	*logical.Server
	client *kubernetes.Clientset
}

// startHub starts a logical cluster on empty data, joins the clusters, starts it once more, and measures it on the way.
func startHub(ctx context.Context, binary, dir string, clusters []*stock.Cluster, figures *hubFigures) (h *hub, err error) {
	dir = filepath.Join(dir, "manifold")
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("remove the data of an earlier run: %w", err)
	}
	fmt.Fprintln(os.Stderr, "bench: start the logical cluster")
	server, err := logical.Start(ctx, logical.Options{Binary: binary, Dir: dir})
	if err != nil {
		return nil, err
	}
	h = &hub{Server: server}
	if err := h.prepare(ctx, clusters, figures); err != nil {
		return nil, fmt.Errorf("prepare the logical cluster: %w", errors.Join(err, h.Stop()))
	}
	return h, nil
}

func (h *hub) prepare(ctx context.Context, clusters []*stock.Cluster, figures *hubFigures) error {
	figures.StartFresh = h.Took().Seconds()
	for _, c := range clusters {
		fmt.Fprintf(os.Stderr, "bench: join cluster %s\n", c.Name())
		if err := h.Join(ctx, c); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "bench: start the logical cluster again")
	if err := h.Terminate(); err != nil {
		return err
	}
	if err := h.Start(ctx); err != nil {
		return err
	}
	figures.StartAgain = h.Took().Seconds()

	config, err := h.RESTConfig()
	if err != nil {
		return err
	}
	if h.client, err = kubernetes.NewForConfig(protobuf(config)); err != nil {
		return fmt.Errorf("make the client of the logical cluster: %w", err)
	}
	m := &machine{clusters: clusters, hub: h}
	if err := m.settle(ctx); err != nil {
		return err
	}
	figures.IdleMemory, err = h.memoryAtRest(ctx)
	return err
}

// restTime is how long a process must have had nothing to do for its memory to be that at rest: it looks every few seconds what it can
// give back.
const restTime = 15 * time.Second

// memoryAtRest waits and returns the resident memory in MiB.
func (h *hub) memoryAtRest(ctx context.Context) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(restTime):
	}
	usage, err := process.UsageOf(h.Process().PID())
	return float64(usage.RSS) / (1 << 20), err
}

func (h *hub) requests(ctx context.Context) (requests, error) {
	raw, err := h.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return requests{}, fmt.Errorf("read the metrics of the logical cluster: %w", err)
	}
	return parseRequests(raw)
}
