package syncer

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// wake has the other syncers look again that hold back a part of an object until there is a change.
func (u *Upstream) wake(key identity.Key, except *Syncer) {
	for _, other := range u.Syncers() {
		if st := other.stateOf(key); other != except && (st.held || st.paced) {
			other.enqueue(key)
		}
	}
}

// wakeAll is wake for every object, when it becomes known what a cluster has, or that it is not asked any more.
func (u *Upstream) wakeAll(except *Syncer) {
	for _, other := range u.Syncers() {
		if other == except {
			continue
		}
		for _, key := range other.heldKeys() {
			other.enqueue(key)
		}
	}
}

func (s *Syncer) heldKeys() []identity.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []identity.Key
	for key, st := range s.states {
		if st.held || st.paced {
			out = append(out, key)
		}
	}
	return out
}

// podLeft wakes those who wait for a pod that is gone: for its number, or to be empty.
func (s *Syncer) podLeft(pod *corev1.Pod) {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return
	}
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if ok && kind.Workload {
		s.Upstream.wake(identity.Key{Resource: kind.Resource, Namespace: pod.Namespace, Name: ref.Name}, nil)
	}
}
