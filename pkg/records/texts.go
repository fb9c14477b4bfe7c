package records

import "sync"

// Texts remember the last text that there was to tell of each thing. The zero value remembers none.
type Texts[K comparable] struct {
	mu   sync.Mutex
	last map[K]string
}

// News notes what there is to tell of a thing, "" for nothing, and reports whether there is something, and another text than before.
func (t *Texts[K]) News(of K, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.last[of]
	switch {
	case text == "":
		delete(t.last, of)
	case t.last == nil:
		t.last = map[K]string{of: text}
	default:
		t.last[of] = text
	}
	return text != "" && text != before
}
