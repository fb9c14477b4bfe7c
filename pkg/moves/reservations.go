package moves

import (
	"sync"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// reservations are the ordinals that clusters were told to run by writes that their watches have not shown yet. Without them, a cluster could be
// told to run what another one has just been told to, and does not seem to have.
type reservations struct {
	mu    sync.Mutex
	byKey map[identity.Key]map[string]reservation
}

// reservation is what one cluster may run beyond what its watch shows.
type reservation struct {
	ordinals placement.Range
	// hash is that of the projection that was written; "" as long as nothing was.
	hash string
}

// of returns what is reserved for a cluster. The caller holds the lock.
func (r *reservations) of(key identity.Key, cluster string) reservation { return r.byKey[key][cluster] }

// grant reserves ordinals beside those that were. The caller holds the lock.
func (r *reservations) grant(key identity.Key, cluster string, ordinals placement.Range) {
	r.set(key, cluster, reservation{ordinals: ordinals.Hull(r.of(key, cluster).ordinals)})
}

// set notes a reservation; one without ordinals is dropped. The caller holds the lock.
func (r *reservations) set(key identity.Key, cluster string, to reservation) {
	if to == (reservation{}) {
		delete(r.byKey[key], cluster)
		if len(r.byKey[key]) == 0 {
			delete(r.byKey, key)
		}
		return
	}
	if r.byKey == nil {
		r.byKey = map[identity.Key]map[string]reservation{}
	}
	if r.byKey[key] == nil {
		r.byKey[key] = map[string]reservation{}
	}
	r.byKey[key][cluster] = to
}

// Writing notes that a projection of that hash is about to be written to a cluster.
func (f *Fleets) Writing(key identity.Key, cluster, hash string) {
	f.reservations.mu.Lock()
	defer f.reservations.mu.Unlock()
	if found := f.reservations.of(key, cluster); found != (reservation{}) {
		found.hash = hash
		f.reservations.set(key, cluster, found)
	}
}

// Reserved returns the hash of the projection by which ordinals are reserved for a cluster, "" if it was not written yet. Reserved is false if
// there are none.
func (f *Fleets) Reserved(key identity.Key, cluster string) (hash string, reserved bool) {
	f.reservations.mu.Lock()
	defer f.reservations.mu.Unlock()
	found := f.reservations.of(key, cluster)
	return found.hash, found != (reservation{})
}

// Release drops what is reserved for a cluster of a workload, once its watch has shown what was written, or nothing was.
func (f *Fleets) Release(key identity.Key, cluster string) {
	f.reservations.mu.Lock()
	defer f.reservations.mu.Unlock()
	f.reservations.set(key, cluster, reservation{})
}

// ReleaseAll drops everything that is reserved for a cluster whose watches have just begun with all that is there.
func (f *Fleets) ReleaseAll(cluster string) {
	f.reservations.mu.Lock()
	defer f.reservations.mu.Unlock()
	for key := range f.reservations.byKey {
		f.reservations.set(key, cluster, reservation{})
	}
}
