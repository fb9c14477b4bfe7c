package applications

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// patience is for how long it is believed that there is no kind of a name.
const patience = 10 * time.Second

// kinds knows which kinds the logical cluster has.
type kinds struct {
	mapper meta.ResettableRESTMapper
	clock  clock.PassiveClock

	mu    sync.Mutex
	asked time.Time
}

// mapping finds a kind. One that is not known may have been defined a moment ago, so discovery is asked again, but not all the time.
func (k *kinds) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	found, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) || !k.askAgain() {
		return found, err
	}
	return k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

func (k *kinds) askAgain() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.clock.Now(); now.Sub(k.asked) >= patience {
		k.asked = now
		k.mapper.Reset()
		return true
	}
	return false
}

// namespaced reports whether objects of a kind are in namespaces, and whether the kind is known.
func (k *kinds) namespaced(gvk schema.GroupVersionKind) (namespaced, known bool) {
	found, err := k.mapping(gvk)
	if err != nil {
		return false, false
	}
	return found.Scope.Name() == meta.RESTScopeNameNamespace, true
}
