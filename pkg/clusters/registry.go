package clusters

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Registry holds the live connections by the names of their clusters. The Manager fills it. It is safe for concurrent use.
type Registry struct {
	mu     sync.RWMutex
	synced bool
	live   map[string]*connection.Connection
	// absent tells for every cluster that has joined but has no connection what is wrong.
	absent map[string]string
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{live: map[string]*connection.Connection{}, absent: map[string]string{}}
}

// NotConnectedError says why there is no connection to a cluster and what to do.
type NotConnectedError struct {
	Cluster string
	Message string
	// Joined is false for a cluster that there is no Cluster object for.
	Joined bool
}

func (e *NotConnectedError) Error() string {
	return fmt.Sprintf("no connection to cluster %q: %s", e.Cluster, e.Message)
}

// Get returns the connection to the cluster of this name. It does not mean that the cluster answers at this moment: a connection
// stays through a silence. Without one the error is a *NotConnectedError.
func (r *Registry) Get(name string) (*connection.Connection, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c, ok := r.live[name]; ok {
		return c, nil
	}
	if why, ok := r.absent[name]; ok {
		return nil, &NotConnectedError{Cluster: name, Message: why, Joined: true}
	}
	if !r.synced {
		return nil, &NotConnectedError{Cluster: name, Message: "the clusters are being read, try again in a moment"}
	}
	return nil, &NotConnectedError{Cluster: name, Message: fmt.Sprintf("it has not joined; run \"manifold cluster join %s\"", name)}
}

// List returns all live connections, sorted by name.
func (r *Registry) List() []*connection.Connection {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]*connection.Connection, 0, len(r.live))
	for _, name := range slices.Sorted(maps.Keys(r.live)) {
		list = append(list, r.live[name])
	}
	return list
}

// Requested returns what the pods of a cluster request at this moment, which is ahead of the cluster's status. It is false for a
// cluster that is not connected or whose pods are not all known yet.
func (r *Registry) Requested(name string) (corev1.ResourceList, bool) {
	r.mu.RLock()
	c, ok := r.live[name]
	r.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return c.Usage.Snapshot()
}

// Levels returns what the pods of a cluster request at this moment by their priority, the lowest first. There are none of a cluster that is
// not connected.
func (r *Registry) Levels(name string) []placement.Level {
	r.mu.RLock()
	c, ok := r.live[name]
	r.mu.RUnlock()
	if !ok {
		return nil
	}
	var out []placement.Level
	for _, level := range c.Usage.Levels() {
		out = append(out, placement.Level{Priority: level.Priority, Requests: placement.ResourcesOf(level.Requests)})
	}
	return out
}

func (r *Registry) setSynced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced = true
}

func (r *Registry) publish(c *connection.Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[c.Name] = c
	delete(r.absent, c.Name)
}

func (r *Registry) withdraw(name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, name)
	r.absent[name] = why
}

func (r *Registry) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, name)
	delete(r.absent, name)
}
