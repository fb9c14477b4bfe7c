package carried

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// held are those of ours in a cluster. They are watched as long as its admin lets them in.
type held struct {
	// poke tells that this may have changed.
	poke chan struct{}

	mu     sync.Mutex
	store  cache.Store // nil while they are not watched
	synced func() bool
	// denied tells that the cluster does not let us read them, although its admin is said to.
	denied bool
}

// changed has it looked at again whether volumes are let in.
func (h *held) changed() {
	select {
	case h.poke <- struct{}{}:
	default:
	}
}

// get returns the volume of ours of that name, nil if there is none. It is not known as long as they have not been seen.
func (h *held) get(name string) (live *corev1.PersistentVolume, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.store == nil || !h.synced() {
		return nil, false
	}
	obj, _, _ := h.store.GetByKey(name) // reading a cache cannot fail
	live, _ = obj.(*corev1.PersistentVolume)
	return live, true
}

// names are those of all that are there.
func (h *held) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.store == nil {
		return nil
	}
	return h.store.ListKeys()
}

func (h *held) set(store cache.Store, synced func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store, h.synced, h.denied = store, synced, false
}

// deny notes whether the cluster lets us read them, and reports whether that is news.
func (h *held) deny(denied bool) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	news = h.denied != denied
	h.denied = denied
	return news
}

// isDenied reports whether the cluster does not let us read them.
func (h *held) isDenied() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.denied
}
