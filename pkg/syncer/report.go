package syncer

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
)

// Goes reports whether an object of the logical cluster is on its way out of all clusters.
func (u *Upstream) Goes(key identity.Key) bool {
	kind, projected := projection.ForResource(key.Resource)
	above := u.Get(key)
	return projected && above != nil && !kind.Lives(above)
}

// Owned is the number of objects of ours that the cluster holds.
func (s *Syncer) Owned() int {
	owned := s.below.secrets.Unseen() + len(s.classes.Brought()) + len(s.volumes.Names())
	for _, store := range s.below.Stores {
		owned += len(store.ListKeys())
	}
	return owned
}

// Volume returns what the cluster has of a PersistentVolume of the logical cluster.
func (s *Syncer) Volume(above *corev1.PersistentVolume, recorded bool) (report summary.VolumeReport, concerned, known bool) {
	return s.volumes.Report(above, recorded)
}

// Resync looks again at everything that the cluster holds of ours.
func (s *Syncer) Resync() {
	for _, kind := range projection.Kinds() {
		for _, obj := range s.below.Stores[kind.Resource].List() {
			s.enqueue(identity.KeyOf(kind, obj.(projection.Object)))
		}
	}
	for _, class := range s.classes.Brought() {
		s.enqueue(classes.PriorityKey(class.Name))
	}
	s.volumes.LookAtHeld()
}

// HasSynced reports whether the syncer has seen all that its cluster holds.
func (s *Syncer) HasSynced() bool { return s.synced.Load() }

// Cluster is the name of the cluster.
func (s *Syncer) Cluster() string { return s.cluster }
