package engine

import (
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// view keeps what placement knows of all clusters, so that a decision looks anew only at those of which something has changed: looking at
// a thousand takes longer than to decide.
type view struct {
	requested func(cluster string) (corev1.ResourceList, bool)
	ledger    *ledger

	mu       sync.Mutex
	seen     map[string]*seen
	snapshot placement.Snapshot
}

// seen is what a cluster was looked at by, and what that says. Objects in a cache never change, and neither do the requests that were told
// once: what is the same object says the same.
type seen struct {
	cluster   *v1alpha1.Cluster
	requested corev1.ResourceList

	known placement.Cluster // without regard to the load
	room  placement.Room
}

func newView(requested func(cluster string) (corev1.ResourceList, bool), l *ledger) *view {
	return &view{requested: requested, ledger: l, seen: map[string]*seen{}}
}

// of returns a snapshot of these clusters as they are now.
func (v *view) of(joined []*v1alpha1.Cluster) placement.Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	loaded := v.ledger.changes()
	var changed []placement.Cluster
	for _, c := range joined {
		now := &seen{cluster: c}
		if live, known := v.requested(c.Name); known {
			now.requested = live
		}
		if last, known := v.seen[c.Name]; known && last.same(now) {
			if !loaded[c.Name] {
				continue
			}
			now = last
		} else {
			now.known, now.room = clusters.ForPlacement(c, now.requested)
			v.seen[c.Name] = now
		}
		out := now.known
		v.ledger.fill(&out, now.room)
		changed = append(changed, out)
	}
	v.snapshot = v.snapshot.With(changed, v.gone(joined))
	return v.snapshot
}

// gone forgets the clusters that are not among those that have joined, and returns their names.
func (v *view) gone(joined []*v1alpha1.Cluster) map[string]bool {
	if len(v.seen) == len(joined) { // each one that has joined was seen
		return nil
	}
	gone := map[string]bool{}
	for name := range v.seen {
		gone[name] = true
	}
	for _, c := range joined {
		delete(gone, c.Name)
	}
	for name := range gone {
		delete(v.seen, name)
	}
	return gone
}

// same tells whether both are about the same object and the same map.
func (s *seen) same(other *seen) bool {
	return s.cluster == other.cluster && reflect.ValueOf(s.requested).Pointer() == reflect.ValueOf(other.requested).Pointer()
}
