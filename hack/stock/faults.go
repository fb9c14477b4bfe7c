package stock

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/hack/stock/process"
)

// run starts a component's process.
func (c *Cluster) run(component Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return fmt.Errorf("start %s of cluster %q: the cluster is stopped", component, c.options.Name)
	}
	args := append(c.layout.args(component), c.options.ExtraArgs[component]...)
	cmd := exec.Command(filepath.Join(c.options.BinDir, string(component)), args...)
	cmd.Dir = c.layout.dir
	cmd.Env = append(cmd.Environ(), c.options.Env...)
	p, err := c.launcher.Run(cmd, c.logFile(component))
	if err != nil {
		return err
	}
	c.processes[component] = p
	return nil
}

func (c *Cluster) logFile(component Component) string {
	return filepath.Join(c.layout.dir, "logs", string(component)+".log")
}

func (c *Cluster) process(component Component) (*process.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.processes[component]
	if !ok {
		return nil, fmt.Errorf("cluster %q has no component %q", c.options.Name, component)
	}
	return p, nil
}

// Kill ends a component as a crash would, and returns when it is gone. Connections to it are refused from then on.
func (c *Cluster) Kill(component Component) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	return p.Kill()
}

// Pause halts a component: it keeps its connections and accepts new ones, and answers nothing. Nodes are not ready any more, and
// pods are evicted in the end, when the API server, kwok or the whole cluster is paused for longer than some 40 seconds.
func (c *Cluster) Pause(component Component) error {
	return c.signal(component, syscall.SIGSTOP)
}

// Resume lets a paused component go on.
func (c *Cluster) Resume(component Component) error {
	return c.signal(component, syscall.SIGCONT)
}

// PauseAll halts the whole cluster, as when the network to it is cut. Pods that are servers do not answer either.
func (c *Cluster) PauseAll() error {
	if c.pods != nil {
		c.pods.Freeze()
	}
	return c.signalAll(syscall.SIGSTOP)
}

// ResumeAll lets a paused cluster go on.
func (c *Cluster) ResumeAll() error {
	if c.pods != nil {
		c.pods.Thaw()
	}
	return c.signalAll(syscall.SIGCONT)
}

func (c *Cluster) signal(component Component, sig syscall.Signal) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	return p.Signal(sig)
}

func (c *Cluster) signalAll(sig syscall.Signal) error {
	var errs []error
	for _, component := range c.Components() {
		errs = append(errs, c.signal(component, sig))
	}
	return errors.Join(errs...)
}

// Restart starts a component again, on the same ports and data, after killing it if it still runs. It returns when the component is
// healthy.
func (c *Cluster) Restart(ctx context.Context, component Component) error {
	if err := c.Kill(component); err != nil {
		return err
	}
	if component == Kwok {
		// A new kwok would wait until the leases that the old one held have run out.
		leases := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		if err := leases.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("free the nodes of cluster %q: %w", c.options.Name, err)
		}
	}
	if err := c.run(component); err != nil {
		return err
	}
	if err := c.waitHealthy(ctx, component); err != nil {
		return fmt.Errorf("restart in cluster %q: %w", c.options.Name, err)
	}
	return nil
}

// Usage returns the processor time and the memory that each component has taken so far. A component that does not run is left out.
func (c *Cluster) Usage() (map[Component]process.Usage, error) {
	usage := map[Component]process.Usage{}
	for _, component := range c.Components() {
		p, err := c.process(component)
		if err != nil || p.Err() != nil {
			continue
		}
		if usage[component], err = process.UsageOf(p.PID()); err != nil {
			return nil, fmt.Errorf("%s of cluster %q: %w", component, c.options.Name, err)
		}
	}
	return usage, nil
}
