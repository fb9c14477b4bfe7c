package syncer

import (
	"context"
	"sync"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// claims are the numbers that clusters were told to run by writes that their watches have not shown yet. Without them, a cluster could be
// told to run what another one has just been told to, and does not seem to have.
type claims struct {
	mu    sync.Mutex
	byKey map[identity.Key]map[string]claim
}

// claim is what one cluster may run beyond what its watch shows.
type claim struct {
	numbers placement.Range
	// hash is that of the projection that was written; "" as long as nothing was.
	hash string
}

func (c *claims) get(key identity.Key, cluster string) (claim, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.byKey[key][cluster]
	return found, ok
}

// set notes a claim; one without numbers is dropped. The caller holds the lock.
func (c *claims) set(key identity.Key, cluster string, to claim) {
	if to == (claim{}) {
		delete(c.byKey[key], cluster)
		if len(c.byKey[key]) == 0 {
			delete(c.byKey, key)
		}
		return
	}
	if c.byKey[key] == nil {
		c.byKey[key] = map[string]claim{}
	}
	c.byKey[key][cluster] = to
}

func (c *claims) drop(key identity.Key, cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(key, cluster, claim{})
}

// dropAll forgets what a cluster claimed, whose watches have just begun with everything that is there.
func (c *claims) dropAll(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.byKey {
		c.set(key, cluster, claim{})
	}
}

// written notes that a projection is about to be written.
func (c *claims) written(key identity.Key, cluster, hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.byKey[key][cluster]; ok {
		found.hash = hash
		c.set(key, cluster, found)
	}
}

// settleClaim drops a claim once the watch has shown what was written, or the write turns out not to have happened. Until then nothing
// else is decided about the object: what the watch shows is of before.
func (s *Syncer) settleClaim(ctx context.Context, kind projection.Kind, key identity.Key, live projection.Object) error {
	open, ok := s.Upstream.claims.get(key, s.cluster)
	if !ok {
		return nil
	}
	if open.hash != "" && (live == nil || hashOf(live) != open.hash) {
		name := kind.New()
		name.SetNamespace(key.Namespace)
		name.SetName(key.Name)
		found, err := s.read(ctx, kind, name)
		if err != nil {
			return err
		}
		if found != nil && hashOf(found) == open.hash {
			return errNotYet
		}
	}
	s.Upstream.claims.drop(key, s.cluster)
	s.Upstream.wake(key, s)
	return nil
}
