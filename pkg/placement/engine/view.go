package engine

import (
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// view keeps what placement knows of all clusters, so that a decision looks anew only at those of which something has changed: looking at
// a thousand takes longer than to decide.
type view struct {
	requested func(cluster string) (corev1.ResourceList, bool)
	ledger    *ledger

	mu       sync.Mutex
	seen     map[string]*seen
	now      []*seen // of the decision that is being made
	snapshot placement.Snapshot
}

// seen is what a cluster was looked at by, and what that says. Objects in a cache never change, and neither do the requests that were told
// once: what is the same object says the same.
type seen struct {
	cluster   *v1alpha1.Cluster
	requested corev1.ResourceList

	known placement.Cluster // without regard to the load
	room  placement.Room

	number  int32  // of the cluster in the ledger
	version uint64 // of the load that the snapshot has; 0 if it has none yet
}

func newView(requested func(cluster string) (corev1.ResourceList, bool), l *ledger) *view {
	return &view{requested: requested, ledger: l, seen: map[string]*seen{}}
}

// of returns a snapshot of these clusters as they are now.
func (v *view) of(joined []*v1alpha1.Cluster) placement.Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = v.now[:0]
	for _, c := range joined {
		v.now = append(v.now, v.look(c))
	}
	v.snapshot = v.snapshot.With(v.ledger.refresh(v.now), v.gone(joined))
	return v.snapshot
}

// look returns what is seen of a cluster.
func (v *view) look(c *v1alpha1.Cluster) *seen {
	requested, known := v.requested(c.Name)
	if !known {
		requested = nil
	}
	last := v.seen[c.Name]
	if last != nil && last.cluster == c && sameMap(last.requested, requested) {
		return last
	}
	next := &seen{cluster: c, requested: requested, number: v.ledger.number(c.Name)}
	next.known, next.room = status.ForPlacement(c, requested)
	v.seen[c.Name] = next
	return next
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

// sameMap reports whether both are one map, or none.
func sameMap(a, b corev1.ResourceList) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
