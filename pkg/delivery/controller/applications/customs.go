package applications

import (
	"cmp"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/state"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// ailing says in which clusters objects of custom kinds are not well, of those that go to clusters.
func ailing(present []observe.Present) map[string]state.Ailment {
	present = slices.Clone(present)
	slices.SortFunc(present, func(a, b observe.Present) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	out := map[string]state.Ailment{}
	for _, p := range present {
		object, is := p.Object.(projection.Object)
		if !is {
			continue
		}
		reported := identity.CopiesOf(object)
		for cluster := range identity.DecisionOf(object) {
			if found, ails := ailmentOf(p.Key.String(), object.GetGeneration(), reported[cluster]); ails {
				out[cluster] = out[cluster].Worse(found)
			}
		}
	}
	return out
}

// ailmentOf says what is wrong with an object in a cluster, false if nothing is.
func ailmentOf(name string, generation int64, reported summary.CustomCluster) (state.Ailment, bool) {
	says := func(health v1alpha1.HealthStatus, what string) (state.Ailment, bool) {
		return state.Ailment{Health: health, Message: delivery.Said(name + ": " + what)}, true
	}
	switch {
	case reported.Problem != "":
		return says(v1alpha1.Degraded, reported.Problem)
	case reported.Content == "" && reported.Generation < generation:
		return says(v1alpha1.Progressing, "the cluster has not taken it up yet")
	case reported.Unready:
		return says(v1alpha1.Progressing, cmp.Or(reported.State, "it is not ready"))
	}
	return state.Ailment{}, false
}
