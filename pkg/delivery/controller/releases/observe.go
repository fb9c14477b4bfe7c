package releases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/routes"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// labelDecided is what a cluster counts as having while a release begins for which placement has chosen the cluster.
const labelDecided = "delivery.manifold.dev/decided"

var decidedLabels = map[string]string{labelDecided: "true"}

// view is what is known of an application on the whole.
type view struct {
	app     *v1alpha1.Application
	memory  *memory
	set     delivery.Set
	wanted  wanted.Wanted
	present []observe.Present
	sharing routes.Sharing
	// broken says why the set stands for nothing, and missing that something of it is not there yet.
	broken  string
	missing bool
	// pruned are the clusters in which what their revision does not have is deleted, whatever the plan says of all.
	pruned sets.Set[string]
}

// look gathers what is known of an application that is to run a set. Plan and newest are those of the release that says so.
func (c *Controller) look(
	ctx context.Context, app *v1alpha1.Application, set delivery.Set, plan *v1alpha1.ReleasePlan, newest string, pruned sets.Set[string],
) (view, error) {
	v := view{app: app, memory: c.memories.of(app), set: set, pruned: pruned}
	var err error
	if v.present, err = c.store.Of(cache.MetaObjectToName(app)); err != nil {
		return v, err
	}
	v.present = append(v.present, v.memory.objects.Unwatched(c.store, app.Namespace)...)
	v.wanted, err = c.made(v, plan, newest)
	c.pace.note(cache.MetaObjectToName(app), max(len(v.present), len(v.wanted.Objects)))
	switch {
	case errors.Is(err, contents.ErrMissing):
		v.missing = true
	case err != nil:
		v.broken = delivery.Said(err.Error())
	default:
		v.sharing, err = c.router.Share(ctx, routes.Application{
			App: app, Owner: ownerOf(app), Set: set, Plan: plan, Wanted: v.wanted, Present: v.present, Failures: v.memory.objects.Failures(),
		}, v.memory.unrouted)
		return v, err
	}
	return v, nil
}

// made returns what a set stands for. Making it again and again would take most of the time.
func (c *Controller) made(v view, plan *v1alpha1.ReleasePlan, newest string) (wanted.Wanted, error) {
	key, err := c.keyOf(v, plan, newest)
	if err != nil {
		return wanted.Wanted{}, err
	}
	if v.memory.key == key {
		return v.memory.made, nil
	}
	application := c.describe(v.app, plan, v.present)
	if application.Keeps != nil && v.pruned.Len() > 0 {
		application.Keeps = without(application.Keeps, v.pruned)
	}
	made, err := wanted.Make(application, v.set, newest, c.revisions.contentsIn(v.app.Namespace))
	if err == nil {
		v.memory.key, v.memory.made = key, made
	}
	return made, err
}

// keyOf names all that made depends on.
func (c *Controller) keyOf(v view, plan *v1alpha1.ReleasePlan, newest string) (string, error) {
	var shares []string
	if plan != nil && !plan.Prune {
		for _, p := range v.present {
			shares = append(shares, p.Key.Group+p.Key.String()+p.Object.GetAnnotations()[manifold.AnnotationPlacement])
		}
		slices.Sort(shares)
	}
	spec := v.app.Spec // what the file of a revision says of it is in no generation
	spec.Source = v1alpha1.Source{}
	text, err := json.Marshal([]any{v.app.Generation, spec, v.set, plan, newest, shares, sets.List(v.pruned), routes.IngressOf(c.router.Maker(v.app))})
	if err != nil {
		return "", err
	}
	sum := fnv.New128a()
	sum.Write(text)
	return string(sum.Sum(nil)), nil
}

// describe is an application as far as its objects have that in common.
func (c *Controller) describe(app *v1alpha1.Application, plan *v1alpha1.ReleasePlan, present []observe.Present) wanted.Application {
	out := wanted.Application{
		Namespace: app.Namespace, Name: app.Name, UID: app.UID, Pinned: !unplaced(app), Rights: app.Spec.ServiceAccountName != "",
		Selected: app.Spec.Source.Selector != nil, Copies: read.Copies(app.Spec), Targets: c.revisions.targetsIn(app.Namespace),
	}
	if app.Spec.Traffic != nil {
		out.Traffic, out.Routes, out.Route = app.Spec.Traffic.Method, routes.Made(c.router.Maker(app)), routes.Written(app.Spec.Traffic)
	}
	if plan == nil || plan.Prune {
		return out
	}
	held := map[wanted.Key]map[string]copies.Share{}
	for _, p := range present {
		shares := map[string]copies.Share{}
		for cluster, share := range identity.WholeDecisionOf(p.Object) {
			if share.Revision != "" {
				shares[cluster] = copies.Share{Revision: share.Revision, Target: share.Target}
			}
		}
		held[p.Key] = shares
	}
	out.Keeps = func(key wanted.Key) map[string]copies.Share { return held[key] }
	return out
}

// seen is what is seen of the clusters.
func (c *Controller) seen(v view, edits map[string]int64) (map[string]delivery.Cluster, error) {
	all, err := c.clusters.List(everything)
	if err != nil {
		return nil, err
	}
	var routing func(string) observe.Routing
	if v.app.Spec.Traffic != nil {
		routing = v.sharing.In
	}
	out := observe.Clusters(observe.World{
		Routing: routing, Set: v.set, Edits: edits, Wanted: v.wanted, Pinned: !unplaced(v.app), Present: v.present, Clusters: all, Failures: v.memory.objects.Failures(),
		Silent: c.clusters.silentSince, Now: c.Clock.Now(), Broken: v.broken, Missing: v.missing,
	})
	return out, nil
}

// firstSight is what is seen when a release begins. Where placement decides, its clusters are marked.
func (c *Controller) firstSight(ctx context.Context, app *v1alpha1.Application, value *delivery.Release, release *v1alpha1.Release) (delivery.Observed, error) {
	v, err := c.look(ctx, app, value.Current, release.Status.Plan, value.Revision.Name, nil)
	if err != nil {
		return delivery.Observed{}, err
	}
	seen, err := c.seen(v, nil)
	if err != nil {
		return delivery.Observed{}, err
	}
	out := delivery.Observed{Clusters: seen, Orders: read.Orders(release.Status.Requests, delivery.Status{})}
	if !unplaced(app) {
		return out, nil
	}
	decided, err := c.decided(ctx, app, value.Revision)
	if err != nil {
		return out, err
	}
	for name, cluster := range out.Clusters {
		cluster.Labels = maps.Clone(cluster.Labels)
		delete(cluster.Labels, labelDecided) // it is not for clusters to say
		if slices.Contains(decided, name) {
			cluster.Labels = decidedLabels
		}
		out.Clusters[name] = cluster
	}
	return out, nil
}

// decided are the clusters that placement has chosen, or would choose, for the first workload of a revision.
func (c *Controller) decided(ctx context.Context, app *v1alpha1.Application, revision delivery.Revision) ([]string, error) {
	part := delivery.Part{Revision: revision, Target: v1alpha1.DefaultTarget}
	set := delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{"": part}}}
	made, err := wanted.Make(c.describe(app, nil, nil), set, revision.Name, c.revisions.contentsIn(app.Namespace))
	if err != nil {
		return nil, waitError{err.Error()}
	}
	for _, object := range made.Objects {
		if !object.Workload {
			continue
		}
		present, _ := c.store.Get(app.Namespace, object.Key)
		if present == nil {
			present, err = c.carrier.DryRun(ctx, accountOf(app), object)
			if refusal := new(objects.RefusedError); errors.As(err, &refusal) {
				return nil, refusedError{err.Error()}
			}
			if err != nil {
				return nil, waitError{fmt.Sprintf("ask where it would run: %s", err)}
			}
		}
		if clusters := identity.WholeDecisionOf(present).Clusters(); len(clusters) > 0 {
			return clusters, nil
		}
		return nil, waitError{fmt.Sprintf("no cluster takes %s: see manifold explain", object.Key)}
	}
	return c.clusters.ready()
}

func accountOf(app *v1alpha1.Application) objects.Account {
	return objects.Account{Namespace: app.Namespace, ServiceAccount: app.Spec.ServiceAccountName}
}

func ownerOf(app *v1alpha1.Application) objects.Owner {
	return objects.Owner{Namespace: app.Namespace, Name: app.Name, UID: app.UID, Selected: app.Spec.Source.Selector != nil}
}
