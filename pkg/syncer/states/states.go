// Package states remembers what came of the last step with each object of a cluster, and who waits for that. It knows nothing of kinds.
package states

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// State is what the last step with an object came to.
type State struct {
	// UID and Generation are those of the object above that was projected, Hash is that of the projection that the cluster holds, also if
	// it is held to another share than was decided. A Hash of "" tells that it holds none.
	UID        types.UID
	Generation int64
	Hash       string
	// Problem says why the cluster does not hold the projection, in words for the user.
	Problem string
	// Note says what will not work although the cluster holds the projection, in words for the user.
	Note string
	// Most is the largest number of replicas that what the cluster was told explains, with those of a rollout, and Told what it was told.
	// Before is what Most was, as long as the cluster still reports more than that.
	Told, Most, Before int32
	// First is the number of the first of numbered replicas that it was told to run.
	First int32
	Wait
}

// Holds reports whether the cluster holds a projection of the object with that UID, by what this process has seen to.
func (st State) Holds(uid types.UID) bool { return st.Hash != "" && st.UID == uid }

// Wait tells that a cluster does not have what was decided, or not as it will be, until there is a change elsewhere.
type Wait struct {
	// Held tells that it has another part than was decided: it keeps more until the rest is available elsewhere, or less until replicas
	// are gone from there.
	Held bool
	// Paced tells that it has its part and is not to update it yet.
	Paced bool
	// Reason is for the user. One that is Brief is told to those who ask, without an event.
	Reason string
	Brief  bool
}

// waits reports whether a change elsewhere may change what the cluster is to have.
func (w Wait) waits() bool { return w.Held || w.Paced }

// States are those of the objects of one cluster.
type States struct {
	enqueue   func(identity.Key)
	forgotten func(identity.Key)

	mu    sync.Mutex
	byKey map[identity.Key]State
	// problems counts the states that have one.
	problems int
	// unseen are the objects that were there at the start and have not been looked at since.
	unseen map[identity.Key]struct{}
	// waitedFor are the objects that wait for another one, waitsFor is the same the other way round.
	waitedFor map[identity.Key]map[identity.Key]struct{}
	waitsFor  map[identity.Key][]identity.Key
}

// New returns the states of a cluster of which nothing is known. Enqueue has an object looked at that waited for another one; forgotten is told
// of objects of which there is nothing to remember any more. Neither may call back.
func New(enqueue, forgotten func(identity.Key)) *States {
	return &States{
		enqueue: enqueue, forgotten: forgotten,
		byKey: map[identity.Key]State{}, unseen: map[identity.Key]struct{}{},
		waitedFor: map[identity.Key]map[identity.Key]struct{}{}, waitsFor: map[identity.Key][]identity.Key{},
	}
}

// Of returns the state of an object, the zero value if nothing is known of it.
func (s *States) Of(key identity.Key) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

// Set notes what a step came to, and has those look again who wait for the object.
func (s *States) Set(key identity.Key, st State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[key].Problem != "" {
		s.problems--
	}
	if st.Problem != "" {
		s.problems++
	}
	s.wakeLocked(key)
	if st == (State{}) {
		delete(s.byKey, key)
		s.forgotten(key)
		return
	}
	s.byKey[key] = st
}

// Hold notes that a cluster stays as it is with an object until there is a change elsewhere.
func (s *States) Hold(key identity.Key) {
	s.update(key, func(st *State) { st.Held = true })
}

// SettleReplicas forgets what the cluster was told before, once it reports no more than it was told last.
func (s *States) SettleReplicas(key identity.Key, replicas int32) {
	s.update(key, func(st *State) {
		if replicas <= st.Most {
			st.Before = 0
		}
	})
}

// update changes the state of an object of which there is any.
func (s *States) update(key identity.Key, change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.byKey[key]; ok {
		change(&st)
		s.byKey[key] = st
	}
}

// Problems reports whether there is a problem with any object.
func (s *States) Problems() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems > 0
}

// Waits reports whether the cluster waits with an object until there is a change elsewhere.
func (s *States) Waits(key identity.Key) bool { return s.Of(key).waits() }

// Waiting returns the objects with which the cluster waits until there is a change elsewhere.
func (s *States) Waiting() []identity.Key {
	return s.such(func(st State) bool { return st.waits() })
}

// Troubled returns the objects with which there is a problem, or of which something will not work.
func (s *States) Troubled() []identity.Key {
	return s.such(func(st State) bool { return st.Problem != "" || st.Note != "" })
}

func (s *States) such(is func(State) bool) []identity.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []identity.Key
	for key, st := range s.byKey {
		if is(st) {
			out = append(out, key)
		}
	}
	return out
}
