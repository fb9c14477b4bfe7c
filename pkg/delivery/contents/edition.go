package contents

import "k8s.io/client-go/tools/cache"

// Edition tells what a revision holds from what another one of its name would: that never changes while the edition is the same, although some of it may
// not be there yet. It is "" for a revision that is not there.
func (r *Reader) Edition(namespace, revision string) string {
	head, err := r.head(namespace, revision)
	if err != nil {
		return ""
	}
	return string(head.UID) + "/" + head.Spec.Hash
}

// Store is what the revisions that a Reader reads are kept in, such as an informer.
type Store interface {
	AddIndexers(cache.Indexers) error
}

// Moment is a time at which all revisions had the editions that they had then.
type Moment struct {
	changes uint64
	version string
}

// Follow has Moment tell of the revisions in a store. Version is how far the watch is that the store is kept by. It may be nil.
func (r *Reader) Follow(store Store, version func() string) error {
	r.version = version
	// It indexes nothing. The store calls it for what comes, changes or goes while it is locked, before anybody can read that.
	count := func(any) ([]string, error) {
		r.changes.Add(1)
		return nil, nil
	}
	if err := store.AddIndexers(cache.Indexers{"changes": count}); err != nil {
		return err
	}
	r.followed = true
	return nil
}

// Moment returns what is the same as long as no revision has another edition, false if that is not known. What is gone when a watch begins anew it knows
// by the version of that.
func (r *Reader) Moment() (Moment, bool) {
	if !r.followed {
		return Moment{}, false
	}
	now := Moment{changes: r.changes.Load()}
	if r.version != nil {
		now.version = r.version()
	}
	return now, true
}
