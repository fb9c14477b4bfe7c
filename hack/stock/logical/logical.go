// Package logical runs a logical cluster as a process of its own, "manifold start" on loopback, for tests, the demo and the benchmark.
package logical

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
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

// Options say what to run. Binary and Dir are required.
type Options struct {
	// Binary is the path of manifold.
	Binary string
	// Dir is the server's folder: the data directory is in it as "data", the log as "manifold.log". Data that is there is kept.
	Dir string
	// Args are further arguments of "manifold start".
	Args []string
}

// Server is a logical cluster. Its methods may not be called at the same time.
type Server struct {
	options  Options
	port     int
	launcher *process.Launcher
	process  *process.Process
	took     time.Duration
}

// Start starts a logical cluster and returns when it is ready. The context bounds the start alone; Stop ends the server. An error
// names the log, and nothing is left running then.
func Start(ctx context.Context, options Options) (*Server, error) {
	if err := os.MkdirAll(options.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the logical cluster: %w", err)
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of the logical cluster: %w", err)
	}
	options.Dir = dir
	port, err := stock.FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, port: port, launcher: process.NewLauncher()}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Start starts the server again, on the same port and data, after killing it if it still runs. It returns when it is ready.
func (s *Server) Start(ctx context.Context) error {
	if err := s.Kill(); err != nil {
		return err
	}
	args := append([]string{"start", "--data-dir", s.DataDir(), "--secure-port", strconv.Itoa(s.port)}, s.options.Args...)
	begin := time.Now()
	p, err := s.launcher.Run(exec.Command(s.options.Binary, args...), s.LogFile())
	if err != nil {
		return err
	}
	s.process = p
	if err := s.untilReady(ctx); err != nil {
		return fmt.Errorf("start the logical cluster: %w; the end of %s:\n%s", err, s.LogFile(), s.LogTail(20))
	}
	s.took = time.Since(begin)
	return nil
}

// SetArgs gives other arguments of "manifold start" than the server was made with, for the next start.
func (s *Server) SetArgs(args ...string) { s.options.Args = args }

// Kill ends the server as a crash would, and returns when it is gone.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	return s.process.Kill()
}

// stopGrace is how long the server may take to drain.
const stopGrace = 30 * time.Second

// Terminate asks the server to end, as Ctrl-C would, and waits until it has. It returns an error when it had to be killed after a grace
// period, or says that something went wrong.
func (s *Server) Terminate() error {
	if err := s.process.Terminate(stopGrace); err != nil {
		return err
	}
	if code := s.process.Err().Error(); code != "exit status 0" {
		return fmt.Errorf("the logical cluster ended with %q; the end of %s:\n%s", code, s.LogFile(), s.LogTail(20))
	}
	return nil
}

// Stop ends the server for good, if it still runs. Its folder stays.
func (s *Server) Stop() error {
	defer s.launcher.Close()
	if s.process == nil {
		return nil
	}
	return s.process.Terminate(stopGrace)
}

// Process returns the running process, or the last that ran.
func (s *Server) Process() *process.Process {
	return s.process
}

// Binary returns the path of manifold, which also has the commands for users.
func (s *Server) Binary() string {
	return s.options.Binary
}

// URL returns the address of the API server.
func (s *Server) URL() string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// Took returns how long the last start took until the server was ready.
func (s *Server) Took() time.Duration {
	return s.took
}

// DataDir returns the data directory.
func (s *Server) DataDir() string {
	return filepath.Join(s.options.Dir, "data")
}

// LogFile returns the path of the log, which has what all processes in this folder have printed.
func (s *Server) LogFile() string {
	return filepath.Join(s.options.Dir, "manifold.log")
}

// LogTail returns the last lines of the log, or why it cannot be read.
func (s *Server) LogTail(lines int) string {
	return process.LogTail(s.LogFile(), lines)
}

// Kubeconfig returns the path of the administrator's kubeconfig, which the server wrote.
func (s *Server) Kubeconfig() string {
	return filepath.Join(s.DataDir(), "admin.kubeconfig")
}

// RESTConfig returns a new configuration of an administrator's client, without client-side throttling.
func (s *Server) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the logical cluster: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// Command returns the command line "manifold args...", set up for the logical cluster.
func (s *Server) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.options.Binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
	return cmd
}

// Join joins a stock cluster under its name and returns when it is ready for work. The error holds what the command said.
func (s *Server) Join(ctx context.Context, cluster *stock.Cluster, args ...string) error {
	args = append([]string{"cluster", "join", cluster.Name(), "--cluster-kubeconfig", cluster.Kubeconfig(), "--wait"}, args...)
	if out, err := s.Command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("join cluster %q: %w\n%s", cluster.Name(), err, out)
	}
	return nil
}

// untilReady asks for /readyz until the answer is good. Health tells no secrets, so nobody proves who they are.
func (s *Server) untilReady(ctx context.Context) error {
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Timeout:   5 * time.Second,
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx, client, s.URL()+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last seen: %w", ctx.Err(), err)
		case <-s.process.Exited():
			return fmt.Errorf("it ended: %w", s.process.Err())
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
