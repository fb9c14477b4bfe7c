package stock

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollInterval is how often a condition that cannot be watched is looked at.
const pollInterval = 50 * time.Millisecond

// until waits until check returns no error. It gives up when the context ends or when a component has exited, and then says what
// was still missing.
func (c *Cluster) until(ctx context.Context, what string, check func(context.Context) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		missing := check(ctx)
		if missing == nil {
			return nil
		}
		if err := c.exited(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last seen: %w", what, ctx.Err(), missing)
		case <-tick.C:
		}
	}
}

// exited returns an error if a component has ended, with the end of its log.
func (c *Cluster) exited() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for component, p := range c.processes {
		if err := p.Err(); err != nil && !c.stopped {
			return fmt.Errorf("%s ended (%w), its log ends with:\n%s", component, err, lastLines(c.logFile(component), 10))
		}
	}
	return nil
}

func lastLines(file string, n int) []byte {
	raw, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

func (c *Cluster) waitHealthy(ctx context.Context, component Component) error {
	url := c.layout.healthURL(component)
	if url == "" {
		return nil
	}
	return c.until(ctx, fmt.Sprintf("wait until %s is healthy", component), func(ctx context.Context) error {
		return c.get(ctx, url)
	})
}

func (c *Cluster) get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := c.probe.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s: %s", url, response.Status, body)
	}
	return nil
}

// waitNamespace waits until pods can be made in the namespace "default": each names a service account.
func (c *Cluster) waitNamespace(ctx context.Context) error {
	return c.until(ctx, `wait for the service account of namespace "default"`, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// waitNodes waits until n nodes are ready and take pods.
func (c *Cluster) waitNodes(ctx context.Context, n int) error {
	return c.until(ctx, fmt.Sprintf("wait for %d nodes", n), func(ctx context.Context) error {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, node := range nodes.Items {
			if takesPods(&node) {
				ready++
			}
		}
		if ready < n {
			return fmt.Errorf("%d are ready", ready)
		}
		return nil
	})
}

func takesPods(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return len(node.Spec.Taints) == 0
		}
	}
	return false
}
