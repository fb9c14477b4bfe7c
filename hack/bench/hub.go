package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

// hub is the process of the logical cluster.
type hub struct {
	binary   string
	dir      string
	address  string
	launcher *process.Launcher
	process  *process.Process
	client   *kubernetes.Clientset
}

// stopGrace is how long the logical cluster may take to drain.
const stopGrace = 30 * time.Second

// startHub starts a logical cluster on empty data, joins the clusters, starts it once more, and measures it on the way.
func startHub(ctx context.Context, binary, dir string, clusters []*stock.Cluster, figures *hubFigures) (h *hub, err error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	h = &hub{
		binary:   binary,
		dir:      filepath.Join(dir, "manifold"),
		address:  fmt.Sprintf("127.0.0.1:%d", port),
		launcher: process.NewLauncher(),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.stop())
		}
	}()
	if err := os.RemoveAll(h.dir); err != nil {
		return nil, fmt.Errorf("remove the data of an earlier run: %w", err)
	}
	if figures.StartFresh, err = h.start(ctx); err != nil {
		return nil, err
	}
	for _, c := range clusters {
		if err := h.join(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := h.process.Terminate(stopGrace); err != nil {
		return nil, err
	}
	if figures.StartAgain, err = h.start(ctx); err != nil {
		return nil, err
	}
	m := &machine{clusters: clusters, hub: h}
	if err := m.settle(ctx); err != nil {
		return nil, err
	}
	usage, err := process.UsageOf(h.process.PID())
	if err != nil {
		return nil, err
	}
	figures.IdleMemory = float64(usage.RSS) / (1 << 20)
	return h, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (h *hub) kubeconfig() string {
	return filepath.Join(h.dir, "admin.kubeconfig")
}

// start starts the process and returns how many seconds it took until it was ready.
func (h *hub) start(ctx context.Context) (float64, error) {
	fmt.Fprintln(os.Stderr, "bench: start the logical cluster")
	_, port, err := net.SplitHostPort(h.address)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	logFile := h.dir + ".log"
	h.process, err = h.launcher.Run(exec.Command(h.binary, "start", "--data-dir", h.dir, "--secure-port", port), logFile)
	if err != nil {
		return 0, err
	}
	if err := h.untilReady(ctx); err != nil {
		return 0, fmt.Errorf("start the logical cluster, see %s: %w", logFile, err)
	}
	took := seconds(time.Since(begin))
	config, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig())
	if err != nil {
		return 0, fmt.Errorf("read the kubeconfig of the logical cluster: %w", err)
	}
	h.client, err = kubernetes.NewForConfig(protobuf(config))
	return took, err
}

// untilReady asks for /readyz until the answer is good. Health tells no secrets, so nobody proves who they are.
func (h *hub) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx, client, "https://"+h.address+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last seen: %w", ctx.Err(), err)
		case <-h.process.Exited():
			return fmt.Errorf("it ended: %w", h.process.Err())
		case <-tick.C:
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}

func (h *hub) join(ctx context.Context, c *stock.Cluster) error {
	fmt.Fprintf(os.Stderr, "bench: join cluster %s\n", c.Name())
	out, err := exec.CommandContext(ctx, h.binary, "cluster", "join", c.Name(),
		"--cluster-kubeconfig", c.Kubeconfig(), "--kubeconfig", h.kubeconfig(), "--wait").CombinedOutput()
	if err != nil {
		return fmt.Errorf("join cluster %q: %w\n%s", c.Name(), err, out)
	}
	return nil
}

func (h *hub) requests(ctx context.Context) (requests, error) {
	raw, err := h.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return requests{}, fmt.Errorf("read the metrics of the logical cluster: %w", err)
	}
	return parseRequests(raw)
}

func (h *hub) stop() error {
	defer h.launcher.Close()
	if h.process == nil {
		return nil
	}
	return h.process.Terminate(stopGrace)
}
