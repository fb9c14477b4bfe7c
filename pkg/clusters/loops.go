package clusters

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// syncStatus brings the status of a Cluster up to what its session knows.
func (m *Manager) syncStatus(ctx context.Context, name string) error {
	cluster, err := m.Clusters.Lister().Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read cluster %q: %w", name, err)
	}
	s := m.session(name)
	if s == nil {
		return nil
	}
	cluster = m.written.newest(cluster)
	seen, again := s.observe(cluster.Status)
	seen.Limits = cluster.Spec.Limits
	if again > 0 {
		m.status.AddAfter(name, again)
	}
	now := m.Clock.Now()
	next := status.Next(cluster.Status, seen, now)
	if wait := status.BeliefEnds(next, now); wait > 0 {
		m.status.AddAfter(name, wait)
	}
	if equality.Semantic.DeepEqual(cluster.Status, next) {
		return nil
	}
	if !seen.Settled && status.IsReady(next) && !status.IsReady(cluster.Status) {
		m.status.AddAfter(name, m.SettleTime)
		return nil
	}
	if wait := status.WriteIn(cluster.Status, next, now.Sub(m.written.at(name)), m.StatusInterval); wait > 0 {
		m.status.AddAfter(name, wait)
		return nil
	}
	return m.writeStatus(ctx, cluster, next, now)
}

func (m *Manager) writeStatus(ctx context.Context, cluster *v1alpha1.Cluster, next v1alpha1.ClusterStatus, now time.Time) error {
	changed := cluster.DeepCopy()
	changed.Status = next
	stored, err := m.Manifold.ManifoldV1alpha1().Clusters().UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the status of cluster %q: %w", cluster.Name, err)
	}
	m.written.note(cluster, stored, now)
	m.mirror.Add(cluster.Name)
	return nil
}

// syncNode makes the Node of a Cluster like it, and removes the Node of a Cluster that is gone.
func (m *Manager) syncNode(ctx context.Context, name string) error {
	last, err := m.Nodes.Lister().Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Node %q: %w", name, err)
	}
	cluster, err := m.Clusters.Lister().Get(name)
	switch {
	case apierrors.IsNotFound(err):
		return m.removeNode(ctx, last)
	case err != nil:
		return fmt.Errorf("read cluster %q: %w", name, err)
	case last != nil && !status.IsMirror(last):
		return fmt.Errorf("mirror cluster %q: a Node of that name exists that is not Manifold's; delete the Node", name)
	}
	var nodes *capacity.Nodes
	if s := m.session(name); s != nil {
		nodes = s.nodeSums()
	}
	return m.storeNode(ctx, last, status.Node(m.written.newest(cluster), nodes, last))
}

func (m *Manager) removeNode(ctx context.Context, node *corev1.Node) error {
	if node == nil || !status.IsMirror(node) {
		return nil
	}
	err := m.Client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To(node.UID)},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Node %q, whose cluster is gone: %w", node.Name, err)
	}
	return nil
}

// storeNode writes what differs between last, nil if there is no Node yet, and node.
func (m *Manager) storeNode(ctx context.Context, last, node *corev1.Node) error {
	nodes := m.Client.CoreV1().Nodes()
	if last == nil {
		// A Node is stored with the status that it is created with.
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create Node %q: %w", node.Name, err)
		}
		return nil
	}
	if !status.SameObject(last, node) {
		stored, err := nodes.Update(ctx, node, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update Node %q: %w", node.Name, err)
		}
		node.ResourceVersion = stored.ResourceVersion
	}
	if !status.SameStatus(last, node) {
		if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update the status of Node %q: %w", node.Name, err)
		}
	}
	return nil
}

// writes remembers the last status written of each cluster: for the pace, and because the cache takes a moment to show it.
type writes struct {
	mu   sync.Mutex
	last map[string]write
}

type write struct {
	at time.Time
	// bases are the resource versions that lie before stored, and that the cache may still show.
	bases  []string
	stored *v1alpha1.Cluster
}

func newWrites() writes { return writes{last: map[string]write{}} }

// note remembers that base became stored.
func (w *writes) note(base, stored *v1alpha1.Cluster, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var bases []string
	if last := w.last[base.Name]; last.stored == base {
		bases = last.bases // the cache had not even shown the write before
	}
	w.last[base.Name] = write{at: now, bases: append(bases, base.ResourceVersion), stored: stored}
}

// newest returns what we wrote, if the cached object is still one from before.
func (w *writes) newest(cached *v1alpha1.Cluster) *v1alpha1.Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.last[cached.Name]; cached.ResourceVersion != "" && slices.Contains(last.bases, cached.ResourceVersion) {
		return last.stored
	}
	return cached
}

// at returns when a cluster's status was written last, the zero time if it was not.
func (w *writes) at(name string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[name].at
}

func (w *writes) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, name)
}
