package stages

import "github.com/manifold-dev/manifold/pkg/delivery"

// Foresee has the set be what the stage makes of it in all of its targets, as if they had done that. The error says why it cannot be told.
func Foresee(r *Run) error {
	if err := r.Prepare(); err != nil {
		return err
	}
	k := kinds[r.Stage.Name]
	for i := range r.Of.Targets { // of a plugin's stage, or one that runs once, there are none
		switch t := &r.Of.Targets[i]; {
		case t.Phase.Ended():
		case t.Retired:
			r.edit(t, delivery.Set{})
		default:
			r.edit(t, k.goal(r, t))
		}
	}
	return nil
}
