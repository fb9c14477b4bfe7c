package syncer

import (
	"context"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// reservations are what is reserved for a cluster by writes that its watch has not shown yet.
type reservations struct {
	cluster string
	fleets  *moves.Fleets
	// writer returns what writes objects of a kind to a namespace of the cluster.
	writer func(kind projection.Kind, namespace string) writer.Writer
	// wake has the others look at an object that they may have held back because of one that is reserved no longer.
	wake func(key identity.Key)
}

// look says how the last write stands by which something is reserved for this cluster. Until the watch shows it, or it turns out not to have
// happened, nothing else is decided about the object: what the watch shows is of before.
func (r *reservations) look(ctx context.Context, kind projection.Kind, key identity.Key, live projection.Object) (planning.Reservation, error) {
	hash, reserved := r.fleets.Reserved(key, r.cluster)
	if !reserved {
		return planning.NothingReserved, nil
	}
	if hash != "" && written(live) != hash {
		found, err := r.writer(kind, key.Namespace).Client.Get(ctx, key.Name)
		if err != nil {
			return planning.NothingReserved, err
		}
		if written(found) == hash {
			return planning.Unseen, nil
		}
	}
	return planning.Over, nil
}

// release drops what is reserved for this cluster.
func (r *reservations) release(key identity.Key) {
	r.fleets.Release(key, r.cluster)
	r.wake(key)
}

// write writes what was reserved for this cluster: a projection of that hash, moves.Gone, or "" for what reserves nothing. The reservation
// counts until it is known what has come of the write. One that the cluster has refused is none.
func (r *reservations) write(key identity.Key, hash string, write func() error) error {
	r.fleets.Writing(key, r.cluster, hash)
	err := write()
	if err != nil && writer.Refused(err) {
		r.fleets.Writing(key, r.cluster, "")
	}
	return err
}

// written is the hash of what was written last to an object, moves.Gone if that was its deletion.
func written(live projection.Object) string {
	if live == nil || live.GetDeletionTimestamp() != nil {
		return moves.Gone
	}
	return projection.HashOf(live)
}

// forgo drops what a step has reserved that came to no write, such as one that waits for something else. The others were to count on it
// for no longer than that.
func (r *reservations) forgo(key identity.Key) {
	if r.fleets.Forgo(key, r.cluster) {
		r.wake(key)
	}
}
