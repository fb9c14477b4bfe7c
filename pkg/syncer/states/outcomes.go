package states

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/pkg/summary"
)

// Done notes what a step came to, and returns what the last one did and whether that was something else.
func (s *States[K]) Done(key K, next State) (last State, news bool) {
	if last = s.Of(key); last == next {
		s.Wake(key) // it may have been gone meanwhile
		return last, false
	}
	s.Set(key, next)
	return last, true
}

// Fail notes why the cluster does not have an object, in words for the user, and reports whether that is news. The UID is that of the object above,
// "" if there is none.
func (s *States[K]) Fail(key K, above types.UID, message string) (news bool) {
	message = summary.Text(message) // a cluster may have worded it
	if s.Of(key).Problem == message {
		return false
	}
	s.Set(key, State{UID: above, Problem: message})
	return true
}
