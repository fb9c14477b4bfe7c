package releases

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/planning"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// Planning has plugins say how releases go. It does not block: a planning.WaitError says what is waited for.
type Planning interface {
	Plan(q planning.Question) (*planning.Answer, error)
	// Changed has somebody told of the application whose release has been planned.
	Changed(tell func(app cache.ObjectName))
}

// ask has plugins plan a release.
func (c *Controller) ask(plan *v1alpha1.ReleasePlan, q planning.Question) error {
	if c.Planning == nil {
		return waitError{"spec.plugins: this server runs no plugins: an admin enables them by manifold start --plugins-dir"}
	}
	answer, err := c.Planning.Plan(q)
	if wait := (planning.WaitError{}); errors.As(err, &wait) {
		c.queue.AddAfter(cache.MetaObjectToName(q.Application), trialAgain) // not all that is waited for tells that it has come
		return waitError{wait.What}
	}
	if err != nil {
		return err
	}
	// What plugins have left to what is built in was not looked at before.
	if _, _, errs := read.Stages(answer.Stages, field.NewPath("spec", "pipeline", "stages")); len(errs) > 0 {
		return errs.ToAggregate()
	}
	plan.Strategy, plan.Reason = v1alpha1.ReleaseStrategy(answer.Strategy), answer.Reason
	plan.Stages, plan.Plugins, plan.Versions, plan.Previews = answer.Stages, answer.Plugins, answer.Versions, answer.Previews
	return nil
}

// PluginChanged has the applications looked at that use a plugin which is ready now, or no longer is. It does not block.
func (c *Controller) PluginChanged(plugin string) {
	found, err := c.applications.List(everything)
	if err != nil {
		return // a cache always lists
	}
	for _, app := range found {
		if planning.Uses(app, plugin) {
			c.queue.AddAfter(cache.MetaObjectToName(app), settle)
		}
	}
}
