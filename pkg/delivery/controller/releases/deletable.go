package releases

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/trials"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// deletable returns a refusedError where who writes the objects of an application may not delete what a release deletes in these places: what no revision
// has any more, and the copies that its stages make.
func (c *Controller) deletable(ctx context.Context, app *v1alpha1.Application, trial trials.Trial, plan *v1alpha1.ReleasePlan, places []delivery.Place) error {
	present, err := c.store.Of(cache.MetaObjectToName(app))
	if err != nil {
		return err
	}
	set := afterwards(trial.Release, places)
	made, err := wanted.Make(c.describe(app, plan, present), set, trial.Release.Revision.Name, c.revisions.contentsIn(app.Namespace))
	if err != nil {
		return nil // what is released was tried before, and of what runs it is told when it is carried out
	}
	keys := objects.Order{Owner: ownerOf(app), Wanted: made, Present: present, Prunes: plan.Prune || prunesEverywhere(plan, set, places)}.Deletes()
	refused, err := c.carrier.MayDelete(ctx, accountOf(app), append(keys, trial.Copies(places)...))
	if err != nil {
		c.queue.AddAfter(cache.MetaObjectToName(app), trialAgain)
		return waitError{err.Error()}
	}
	var told []string
	for _, refusal := range refused {
		why := "which " + trial.Release.Revision.Name + " does not have: "
		if !slices.Contains(keys, refusal.Key) {
			why = "which a stage makes as a copy, and another one takes away: "
		}
		told = append(told, fmt.Sprintf("%s, %s%s", refusal.Key, why, refusal.Err))
	}
	if len(told) == 0 {
		return nil
	}
	return refusedError{"spec.serviceAccountName: " + strings.Join(told, "; ")}
}

// afterwards is the set that a release leaves, as far as that can be told when it begins.
func afterwards(value delivery.Release, places []delivery.Place) delivery.Set {
	clusters := map[string]delivery.Part{}
	for cluster, part := range value.Current[delivery.Primary].Clusters {
		if !slices.Contains(value.Leaves, cluster) {
			clusters[cluster] = part
		}
	}
	for _, place := range places {
		clusters[place.Cluster] = delivery.Part{Revision: value.Revision, Target: place.Target}
	}
	return delivery.Set{delivery.Primary: {Clusters: clusters}}
}

// prunesEverywhere reports whether a stage of a plan prunes in all clusters that run the primary then.
func prunesEverywhere(plan *v1alpha1.ReleasePlan, set delivery.Set, places []delivery.Place) bool {
	for cluster := range set[delivery.Primary].Clusters {
		if !slices.ContainsFunc(places, func(place delivery.Place) bool { return place.Cluster == cluster }) {
			return false
		}
	}
	return slices.ContainsFunc(plan.Stages, func(stage v1alpha1.Stage) bool { return len(stage.Targets) == 0 && read.StagePrunes(&stage) })
}
