package releases

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/routes"
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
}

// memoryOf returns what is remembered of an application.
func (c *Controller) memoryOf(app *v1alpha1.Application) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memories[app.UID] == nil {
		c.memories[app.UID] = &memory{}
	}
	return c.memories[app.UID]
}

// forget drops what is remembered of applications that are gone.
func (c *Controller) forget() {
	all, err := c.applications.List(everything)
	if err != nil {
		return
	}
	there := map[types.UID]bool{}
	for _, app := range all {
		there[app.UID] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid := range c.memories {
		if !there[uid] {
			delete(c.memories, uid)
		}
	}
}
