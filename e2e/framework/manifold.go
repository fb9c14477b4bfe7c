package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/manifold-dev/manifold/hack/stock/process"
)

const (
	// startDeadline is generous: tests may share the machine with builds.
	startDeadline = 2 * time.Minute
	// stopGrace is how long manifold may take to drain.
	stopGrace = 30 * time.Second
)

// Manifold is a process of the logical cluster. It can be stopped and started again on the same data and port.
type Manifold struct {
	// Binary is the program, which also has the commands for users.
	Binary string
	// DataDir is the data directory.
	DataDir string
	// Args are further arguments of "manifold start"; a change takes effect with the next start.
	Args []string

	port     int
	launcher *process.Launcher
	process  *process.Process
}

func newManifold(binary, dataDir string, args []string) *Manifold {
	return &Manifold{Binary: binary, DataDir: dataDir, Args: args}
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (m *Manifold) Kubeconfig() string { return filepath.Join(m.DataDir, "admin.kubeconfig") }

// URL is the address of the API server.
func (m *Manifold) URL() string { return "https://127.0.0.1:" + strconv.Itoa(m.port) }

// LogFile holds what all processes on this data directory have printed.
func (m *Manifold) LogFile() string { return m.DataDir + ".log" }

// PID returns the id of the process.
func (m *Manifold) PID() int { return m.process.PID() }

// Start starts the process and returns once it says that it is ready.
func (m *Manifold) Start(ctx context.Context) error {
	if m.port == 0 {
		port, err := freePort()
		if err != nil {
			return err
		}
		m.port = port
	}
	if m.launcher == nil {
		m.launcher = process.NewLauncher()
	}
	args := append([]string{"start", "--data-dir", m.DataDir, "--secure-port", strconv.Itoa(m.port)}, m.Args...)
	var err error
	if m.process, err = m.launcher.Run(exec.Command(m.Binary, args...), m.LogFile()); err != nil {
		return err
	}
	if err := m.untilReady(ctx); err != nil {
		return fmt.Errorf("start manifold: %w; the end of %s:\n%s", err, m.LogFile(), m.LogTail(20))
	}
	return nil
}

// Terminate asks the process to end, as Ctrl-C does, and waits until it has. It returns an error when it does not end by itself.
func (m *Manifold) Terminate() error {
	if err := m.process.Terminate(stopGrace); err != nil {
		return err
	}
	if code := m.process.Err().Error(); code != "exit status 0" {
		return fmt.Errorf("manifold ended with %q; the end of %s:\n%s", code, m.LogFile(), m.LogTail(20))
	}
	return nil
}

// Kill ends the process as a crash would, and waits until it is gone.
func (m *Manifold) Kill() error { return m.process.Kill() }

// Stop ends the process if it runs. It cannot be started again.
func (m *Manifold) Stop() error {
	if m.launcher == nil {
		return nil
	}
	defer m.launcher.Close()
	if m.process == nil {
		return nil
	}
	return m.process.Terminate(stopGrace)
}

// LogTail returns the last lines of the log.
func (m *Manifold) LogTail(lines int) string { return tail(m.LogFile(), lines) }

func tail(file string, lines int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// untilReady asks for /readyz until the answer is good, which anybody may.
func (m *Manifold) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := get(ctx, client, m.URL()+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-m.process.Exited():
			return fmt.Errorf("it ended: %w", m.process.Err())
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
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
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return err
}

// freePort returns a port from below the range that the kernel hands out by itself, so that it is still free at a second start.
func freePort() (int, error) {
	const first, last, tries = 20000, 32000, 1000
	for range tries {
		port := first + rand.IntN(last-first)
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port between %d and %d: all %d tried are in use", first, last, tries)
}
