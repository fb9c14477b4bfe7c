package endpoints

import (
	"sync"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// Doubts remember what was told of the slices of one cluster. The zero value remembers nothing.
type Doubts struct {
	mu   sync.Mutex
	told map[identity.Key]string
}

// Tell reports whether a text, "" for none, is to be told of a slice: it is another one than before.
func (d *Doubts) Tell(key identity.Key, text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text == "" {
		delete(d.told, key)
		return false
	}
	if d.told[key] == text {
		return false
	}
	if d.told == nil {
		d.told = map[identity.Key]string{}
	}
	d.told[key] = text
	return true
}
