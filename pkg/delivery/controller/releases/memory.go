package releases

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/routes"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/trials"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// memory is what is remembered of an application. It saves work, and is built anew after a restart. One worker uses it at a time.
type memory struct {
	objects objects.Memory
	// made is what was made last of a variant set, and key what it was made of.
	key      string
	made     wanted.Wanted
	unrouted routes.Refused
	// unmade says why a route that is to be made is not, "" if it is. It was told.
	unmade string
	// trial is what was admitted of the release that is to begin next.
	trial trials.Memory
}

// memories are what is remembered of applications, by their UID.
type memories struct {
	mu  sync.Mutex
	all map[types.UID]*memory
}

// of returns what is remembered of an application.
func (m *memories) of(app *v1alpha1.Application) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.UID]*memory{}
	}
	if m.all[app.UID] == nil {
		m.all[app.UID] = &memory{}
	}
	return m.all[app.UID]
}

// keep drops what is remembered of all but some applications.
func (m *memories) keep(there []*v1alpha1.Application) {
	uids := sets.New[types.UID]()
	for _, app := range there {
		uids.Insert(app.UID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.all, func(uid types.UID, _ *memory) bool { return !uids.Has(uid) })
}
