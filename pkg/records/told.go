package records

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Told remembers what users have been told of objects, so that each thing is told once. The zero value remembers nothing yet.
type Told struct {
	mu   sync.Mutex
	last map[types.UID][]said
}

// said is the last message about something.
type said struct{ about, message string }

// News notes the last message about something that concerns an object, and reports whether it is another one than before. An empty message
// says that there is nothing to tell any more.
func (t *Told) News(of types.UID, about, message string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.last[of]
	i := slices.IndexFunc(all, func(s said) bool { return s.about == about })
	switch {
	case i < 0 && message == "":
		return false
	case i >= 0 && all[i].message == message:
		return false
	case i >= 0:
		all = slices.Delete(all, i, i+1)
	}
	if message != "" {
		all = append(all, said{about, message})
	}
	if t.last == nil {
		t.last = map[types.UID][]said{}
	}
	if t.last[of] = all; len(all) == 0 {
		delete(t.last, of)
	}
	return true
}

// Forget is for an object that is gone.
func (t *Told) Forget(of types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, of)
}

// Len is the number of objects that something was told of.
func (t *Told) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.last)
}
