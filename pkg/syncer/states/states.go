// Package states remembers what came of the last step with each object of a cluster, and who waits for that. It knows nothing of kinds, and is the
// same for built-in and custom ones, which name their objects differently.
package states

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	// Revision is the mark of the revision whose content the projection has, and of a custom resource the name of the one that the cluster is to hold; "" for
	// none.
	Revision string
	// Most is the largest number of replicas that what the cluster was told explains, with those of a rollout, and Told what it was told.
	// Before is what Most was, as long as the cluster still reports more than that.
	Told, Most, Before int32
	// First is the number of the first of numbered replicas that it was told to run.
	First int32
	Wait
	Copy
}

// Copy is what else there is to remember of a custom resource: its copy says nothing by itself that counts.
type Copy struct {
	// Older tells that the object stands at a newer revision than the cluster is to hold, and Excluded that this has nothing of the object.
	Older, Excluded bool
	// Routes is the mark of what the projection has otherwise than the object above says.
	Routes string
	// Absent tells that the cluster was seen to have nothing of an object that says it may.
	Absent bool
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
	// Addressed tells that it keeps the last replicas for the sake of an address from outside, and Until how long it does at most, zero if only a
	// change ends that.
	Addressed bool
	Until     time.Time
}

// waits reports whether a change elsewhere may change what the cluster is to have.
func (w Wait) waits() bool { return w.Held || w.Paced }

// States are those of the objects of one cluster.
type States[K comparable] struct {
	enqueue   func(K)
	forgotten func(K)

	mu    sync.Mutex
	byKey map[K]State
	// problems counts the states that have one.
	problems int
	// addressed are the objects of which the last replicas are kept for the sake of an address.
	addressed map[K]struct{}
	// unseen are the objects that were there at the start and have not been looked at since.
	unseen map[K]struct{}
	// waitedFor are the objects that wait for another one, waitsFor is the same the other way round.
	waitedFor map[K]map[K]struct{}
	waitsFor  map[K][]K
}

// New returns the states of a cluster of which nothing is known. Enqueue has an object looked at that waited for another one; forgotten is told
// of objects of which there is nothing to remember any more. Neither may call back.
func New[K comparable](enqueue, forgotten func(K)) *States[K] {
	return &States[K]{
		enqueue: enqueue, forgotten: forgotten,
		byKey: map[K]State{}, addressed: map[K]struct{}{}, unseen: map[K]struct{}{},
		waitedFor: map[K]map[K]struct{}{}, waitsFor: map[K][]K{},
	}
}

// Of returns the state of an object, the zero value if nothing is known of it.
func (s *States[K]) Of(key K) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

// Set notes what a step came to, and has those look again who wait for the object.
func (s *States[K]) Set(key K, st State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[key].Problem != "" {
		s.problems--
	}
	if st.Problem != "" {
		s.problems++
	}
	if st.Addressed {
		s.addressed[key] = struct{}{}
	} else {
		delete(s.addressed, key)
	}
	s.wakeLocked(key)
	if st == (State{}) {
		delete(s.byKey, key)
		s.forgotten(key)
		return
	}
	s.byKey[key] = st
}

// Addressed returns the objects that match of those of which the cluster keeps the last replicas for the sake of an address from outside.
func (s *States[K]) Addressed(match func(K) bool) []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []K
	for key := range s.addressed {
		if match(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Hold notes that a cluster stays as it is with an object until there is a change elsewhere.
func (s *States[K]) Hold(key K) {
	s.update(key, func(st *State) { st.Held = true })
}

// SettleReplicas forgets what the cluster was told before, once it reports no more than it was told last.
func (s *States[K]) SettleReplicas(key K, replicas int32) {
	s.update(key, func(st *State) {
		if replicas <= st.Most {
			st.Before = 0
		}
	})
}

// update changes the state of an object of which there is any.
func (s *States[K]) update(key K, change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.byKey[key]; ok {
		change(&st)
		s.byKey[key] = st
	}
}

// Problems reports whether there is a problem with any object.
func (s *States[K]) Problems() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems > 0
}

// Waits reports whether the cluster waits with an object until there is a change elsewhere.
func (s *States[K]) Waits(key K) bool { return s.Of(key).waits() }

// Known returns the objects of which anything is remembered.
func (s *States[K]) Known() []K { return s.such(func(State) bool { return true }) }

// Waiting returns the objects with which the cluster waits until there is a change elsewhere.
func (s *States[K]) Waiting() []K {
	return s.such(func(st State) bool { return st.waits() })
}

// Troubled returns the objects with which there is a problem, or of which something will not work.
func (s *States[K]) Troubled() []K {
	return s.such(func(st State) bool { return st.Problem != "" || st.Note != "" })
}

func (s *States[K]) such(is func(State) bool) []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []K
	for key, st := range s.byKey {
		if is(st) {
			out = append(out, key)
		}
	}
	return out
}
