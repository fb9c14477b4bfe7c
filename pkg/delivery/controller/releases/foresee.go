package releases

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/routes"
	"github.com/manifold-dev/manifold/pkg/delivery/engine"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// routable returns a refusedError where a stage of a release that begins could not have requests shared out by the route that users write, as far as that can
// be told before anything is applied, and a waitError where the route may still come, or come to go where it is needed.
func (c *Controller) routable(
	ctx context.Context, app *v1alpha1.Application, plan *v1alpha1.ReleasePlan, release delivery.Release, begun delivery.Status, seen delivery.Observed,
) error {
	if app.Spec.Traffic == nil || app.Spec.Traffic.Makes() || !slices.ContainsFunc(plan.Stages, routesTraffic) {
		return nil
	}
	var primary delivery.Set
	var made wanted.Wanted
	for _, step := range engine.Foresee(release, begun, seen) {
		if step.Stage.Plugin != "" || step.Stage.Name != delivery.StageTrafficRouting {
			continue
		}
		if now := (delivery.Set{delivery.Primary: step.Set[delivery.Primary]}); primary == nil || !sameContent(primary, now) {
			var err error
			if made, err = wanted.Make(c.describe(app, plan, nil), now, release.Revision.Name, c.revisions.contentsIn(app.Namespace)); err != nil {
				return nil // of a revision that cannot be read the release itself tells
			}
			primary = now
		}
		lack, err := c.router.Foresee(ctx, routes.Application{App: app, Owner: ownerOf(app), Set: step.Set, Plan: plan, Wanted: made}, step.Clusters)
		if err != nil {
			return waitError{err.Error()}
		}
		if lack.Absent && slices.ContainsFunc(begun.Targets, func(place delivery.Place) bool {
			return c.revisions.brought(app, release.Revision, place.Target) != nil
		}) {
			return refusedError{fmt.Sprintf("stage %s: spec.traffic: the %s comes with %s, and the stage shares out requests before that is there: release with strategy %s first",
				step.Stage.ID, app.Spec.Traffic.Method, release.Revision.Name, v1alpha1.StrategyQuickSync)}
		}
		if lack.Refused != "" {
			return refusedError{fmt.Sprintf("stage %s: %s", step.Stage.ID, lack.Refused)}
		}
		if lack.Awaits != "" {
			c.queue.AddAfter(cache.MetaObjectToName(app), trialAgain)
			return waitError{fmt.Sprintf("stage %s: %s", step.Stage.ID, lack.Awaits)}
		}
	}
	return nil
}

// sameContent reports whether the primary has the same manifests in the same clusters by two sets, whatever its shares.
func sameContent(a, b delivery.Set) bool {
	one, other := a[delivery.Primary].Clusters, b[delivery.Primary].Clusters
	if len(one) != len(other) {
		return false
	}
	for cluster, part := range one {
		if against, has := other[cluster]; !has || part.Revision != against.Revision || part.Target != against.Target {
			return false
		}
	}
	return true
}

// brought is the route that users write as a revision has it among the manifests of a target, nil if it has none.
func (r revisions) brought(app *v1alpha1.Application, revision delivery.Revision, target string) *unstructured.Unstructured {
	route := routes.Written(app.Spec.Traffic)
	found, _ := r.contentsIn(app.Namespace)(delivery.Part{Revision: revision, Target: target}) // what cannot be read is told when it is tried
	var out []*unstructured.Unstructured
	for _, object := range found {
		if key := wanted.KeyOf(object); key == route || route.Name == "" && key.Group == route.Group && key.Kind == route.Kind {
			out = append(out, object)
		}
	}
	if len(out) != 1 {
		return nil
	}
	return out[0]
}
