package moves

import (
	"hash/fnv"
	"io"
	"sync"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Gone stands for the hash of a projection where none is to be left.
const Gone = "gone"

// reservations are what clusters are told by writes that their watches have not shown yet. Without them, a cluster could be told to run an ordinal
// that another one has just been told to run. Or it could give up replicas in favour of others which have just been given up too.
//
// They are kept in parts with a lock each, so that few workloads wait for one another. All that is reserved of a workload is in one part.
type reservations [64]part

// part is what is reserved of some workloads.
type part struct {
	mu    sync.Mutex
	byKey map[identity.Key]map[string]reservation
}

// reservation is what one cluster may run beyond what its watch shows, and what it may not run although its watch shows it.
type reservation struct {
	// ordinals are those that it is given.
	ordinals placement.Range
	// replicas bounds how many it runs of a workload without ordinals. They count if it is being told another number.
	replicas Writing
	counts   bool
	// hash is that of the projection that was written, or Gone; "" as long as nothing was.
	hash string
}

// of returns the part that a workload is in.
func (r *reservations) of(key identity.Key) *part {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, key.Namespace+"/"+key.Name) // it returns no error
	return &r[sum.Sum32()%uint32(len(r))]
}

// of returns what is reserved for a cluster. The caller holds the lock.
func (p *part) of(key identity.Key, cluster string) reservation { return p.byKey[key][cluster] }

// add reserves something beside what was. The caller holds the lock.
func (p *part) add(key identity.Key, cluster string, change reservation) {
	last := p.of(key, cluster)
	change.ordinals = change.ordinals.Hull(last.ordinals)
	if last.counts {
		change.replicas = change.replicas.hull(last.replicas)
	}
	p.set(key, cluster, change)
}

// set notes a reservation; an empty one is dropped. The caller holds the lock.
func (p *part) set(key identity.Key, cluster string, to reservation) {
	if to == (reservation{}) {
		delete(p.byKey[key], cluster)
		if len(p.byKey[key]) == 0 {
			delete(p.byKey, key)
		}
		return
	}
	if p.byKey == nil {
		p.byKey = map[identity.Key]map[string]reservation{}
	}
	if p.byKey[key] == nil {
		p.byKey[key] = map[string]reservation{}
	}
	p.byKey[key][cluster] = to
}

// Writing notes that a projection of that hash is about to be written to a cluster, or that it is about to be deleted there: Gone.
func (f *Fleets) Writing(key identity.Key, cluster, hash string) {
	p := f.reservations.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.of(key, cluster); found != (reservation{}) {
		found.hash = hash
		p.set(key, cluster, found)
	}
}

// Reserved returns the hash of the projection by which something is reserved for a cluster, "" if it was not written yet. Reserved is false if
// nothing is.
func (f *Fleets) Reserved(key identity.Key, cluster string) (hash string, reserved bool) {
	p := f.reservations.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.of(key, cluster)
	return found.hash, found != (reservation{})
}

// Release drops what is reserved for a cluster of a workload, once its watch has shown what was written, or nothing was.
func (f *Fleets) Release(key identity.Key, cluster string) {
	p := f.reservations.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(key, cluster, reservation{})
}

// Forgo drops what is reserved of replicas without ordinals for a cluster if nothing was written after all, and reports whether anything was.
func (f *Fleets) Forgo(key identity.Key, cluster string) bool {
	p := f.reservations.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.of(key, cluster)
	if !found.counts || found.hash != "" {
		return false
	}
	p.set(key, cluster, reservation{})
	return true
}

// ReleaseAll drops everything that is reserved for a cluster whose watches have just begun with all that is there, or have ended.
func (f *Fleets) ReleaseAll(cluster string) {
	for i := range f.reservations {
		f.reservations[i].releaseAll(cluster)
	}
}

func (p *part) releaseAll(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.byKey {
		p.set(key, cluster, reservation{})
	}
}
