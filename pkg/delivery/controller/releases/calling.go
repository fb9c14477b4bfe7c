package releases

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/calls"
	"github.com/manifold-dev/manifold/pkg/delivery/stages"
)

// Calls has plugins run stages.
type Calls interface {
	// Outcome has a plugin run a stage if none does yet, and says how far it is. An error is worth another try.
	Outcome(run calls.Run) (delivery.Outcome, error)
	// Stop ends those calls for a release that are not to be kept, and forgets those that its status tells of.
	Stop(release *v1alpha1.Release, keep func(name string) bool)
	// Drop ends all calls for a release that is gone.
	Drop(release types.UID)
	// Changed has somebody told of the application whose stage has got further.
	Changed(tell func(app cache.ObjectName))
}

// watchPlugins has applications looked at whose plugins have planned, or got further, and ends the calls for releases that are gone.
func (c *Controller) watchPlugins() error {
	if c.Planning != nil {
		c.Planning.Changed(c.queue.Add)
	}
	if c.Calls == nil {
		return nil
	}
	c.Calls.Changed(c.queue.Add)
	registration, err := c.Manifold.Delivery().V1alpha1().Releases().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		obj = caches.Last(obj)
		if release, is := obj.(*v1alpha1.Release); is {
			c.Calls.Drop(release.UID)
		}
	}})
	if err != nil {
		return fmt.Errorf("watch releases whose stages plugins run: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	return nil
}

// call has a plugin run a stage, and says how far it is.
func (c *Controller) call(s situation, due stages.Call) delivery.Outcome {
	if c.Calls == nil {
		return delivery.Outcome{Phase: delivery.Failed, Message: "this server runs no plugins: it is started without --plugins-dir"}
	}
	run := calls.Run{
		Application: s.app, Release: s.last, Revision: c.revisions.of(s.last), Stage: due.Stage, Name: due.Name, Attempt: due.Attempt + 1, Until: due.Until,
	}
	var err error
	if run.Before, err = c.revisions.before(s.last); err == nil {
		var outcome delivery.Outcome
		if outcome, err = c.Calls.Outcome(run); err == nil {
			return outcome
		}
	}
	// It is asked again when something changes, or soon.
	c.queue.AddAfter(cache.MetaObjectToName(s.app), time.Second)
	return delivery.Outcome{Phase: delivery.Running, Message: delivery.Said(err.Error())}
}
