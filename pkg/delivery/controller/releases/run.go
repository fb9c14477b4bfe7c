package releases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/engine"
	"github.com/manifold-dev/manifold/pkg/delivery/planner"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/scripts"
	"github.com/manifold-dev/manifold/pkg/delivery/stages"
)

// continues takes the release that has begun last as far as it gets, writes that, and then brings about what it says. It returns the release as it is
// then.
func (c *Controller) continues(ctx context.Context, s situation, turn planner.Turn) (*v1alpha1.Release, error) {
	if s.app.Spec.Suspend || s.last.Status.Plan == nil {
		return s.last, c.carryOut(ctx, s.app, s.last, nil)
	}
	next, v, err := c.next(ctx, s, turn)
	if err != nil {
		return nil, err
	}
	release, err := c.write(ctx, s.app, s.last, next)
	if err != nil {
		return nil, err
	}
	if release != s.last { // it may ask for something else now
		return release, c.carryOut(ctx, c.revisions.effective(s.own, release), release, nil)
	}
	return release, c.carryOut(ctx, s.app, release, &v)
}

// next is the status that comes next, and what was seen for it.
func (c *Controller) next(ctx context.Context, s situation, turn planner.Turn) (v1alpha1.ReleaseStatus, view, error) {
	release, out := s.last, *s.last.Status.DeepCopy()
	status := read.Status(release.Status)
	value, err := releaseOf(s.app, release, out.Plan, c.revisions.of(release))
	if err != nil {
		return out, view{}, fmt.Errorf("read the plan of Release %s/%s: %w", release.Namespace, release.Name, err)
	}
	value.Otherwise = c.revisions.otherwise(release.Namespace, out.BeforeDeliveryRevision, release.DeliveredAs())
	value.Commit.Paths = c.revisions.changed(value.Stages, s.app, out.BeforeRevision, release.Spec.Revision)
	if value.Leaves, err = c.clusters.leaves(s.app, release, status.Set); err != nil {
		return out, view{}, err
	}
	v, err := c.look(ctx, s.app, status.Set, out.Plan, release.Spec.Revision, prunedBy(release.Spec.Revision, &out, status.Set))
	if err != nil {
		return out, v, err
	}
	seen := delivery.Observed{Orders: read.Orders(release.Status.Requests, status)}
	if turn.Cancel && s.running != nil {
		seen.Orders.Cancel = &delivery.Cancel{By: "release " + turn.Begin + ", which is newer"}
	}
	if seen.Clusters, err = c.seen(v, status.Edits); err != nil {
		return out, v, err
	}
	now := c.Clock.Now()
	result := engine.Next(value, status, seen, now)
	if c.fulfil(ctx, s, result.Due, &seen, now) {
		result = engine.Next(value, status, seen, c.Clock.Now())
	}
	if !result.At.IsZero() {
		c.queue.AddAfter(cache.MetaObjectToName(s.app), max(result.At.Sub(now), settle))
	}
	if err := c.stop(ctx, s, result.Due); err != nil {
		return out, v, err
	}
	read.Write(result.Status, &out)
	takenBack(&out)
	superseded := release.Status.Phase == v1alpha1.ReleaseSuperseded || turn.Cancel && s.running != nil
	if superseded && out.Phase == v1alpha1.ReleaseCancelled {
		out.Phase = v1alpha1.ReleaseSuperseded
	}
	complete(&out, c.Clock.Now())
	return out, v, nil
}

// fulfil does what stages ask for: it measures what is due, and has scripts, Jobs and plugins run. It reports whether there is anything new to see.
func (c *Controller) fulfil(ctx context.Context, s situation, due stages.Due, seen *delivery.Observed, now time.Time) bool {
	news := c.measurements(ctx, s, due.Measure, seen, now)
	for _, script := range due.Scripts {
		if seen.Scripts == nil {
			seen.Scripts = map[string]delivery.Outcome{}
		}
		seen.Scripts[script.Name] = c.script(ctx, s, script)
		news = true
	}
	for _, call := range due.Calls {
		if seen.Calls == nil {
			seen.Calls = map[string]delivery.Outcome{}
		}
		seen.Calls[call.Name] = c.call(s, call)
		news = true
	}
	return news
}

func (c *Controller) measure(ctx context.Context, s situation, due stages.Measure) delivery.Measurement {
	out := delivery.Measurement{Metric: due.Metric, Time: c.Clock.Now(), Error: "nothing in this server measures"}
	if c.Measurer == nil {
		return out
	}
	measured, err := c.Measurer.Measure(ctx, s.app, s.last, stageOf(s.last, due.Stage), due.Metric)
	if err != nil {
		out.Error = delivery.Said(err.Error())
		return out
	}
	measured.Metric = due.Metric
	if measured.Time.IsZero() {
		measured.Time = out.Time
	}
	return measured
}

func (c *Controller) script(ctx context.Context, s situation, due stages.Script) delivery.Outcome {
	if c.Scripts == nil {
		return delivery.Outcome{Phase: delivery.Failed, Message: "nothing in this server runs scripts"}
	}
	outcome, err := c.Scripts.Outcome(ctx, scripts.Run{
		Application: s.app, Release: s.last, Stage: stageOf(s.last, due.Stage), Name: due.Name, Undo: due.Undo, Metric: due.Metric,
	})
	if err != nil {
		// It is asked again when something changes, or soon.
		c.queue.AddAfter(cache.MetaObjectToName(s.app), time.Second)
		return delivery.Outcome{Phase: delivery.Running, Message: delivery.Said(err.Error())}
	}
	return outcome
}

// stop ends the scripts, Jobs and calls of plugins that no stage waits for any more.
func (c *Controller) stop(ctx context.Context, s situation, due stages.Due) error {
	if c.Calls != nil {
		c.Calls.Stop(s.last, func(name string) bool {
			return slices.ContainsFunc(due.Calls, func(call stages.Call) bool { return call.Name == name })
		})
	}
	if c.Scripts == nil {
		return nil
	}
	return c.Scripts.Stop(ctx, s.app, s.last, func(name string) bool {
		return slices.ContainsFunc(due.Scripts, func(script stages.Script) bool { return script.Name == name })
	})
}

// stageOf is a stage as it was planned.
func stageOf(release *v1alpha1.Release, id string) v1alpha1.Stage {
	for i, stage := range release.Status.Plan.Stages {
		if v1alpha1.StageID(&release.Status.Plan.Stages[i], i) == id {
			return stage
		}
	}
	return v1alpha1.Stage{ID: id}
}

// carryOut brings about what a release says. Seen is what is known of that, nil to look.
func (c *Controller) carryOut(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release, seen *view) error {
	status := read.Status(release.Status)
	if seen == nil {
		v, err := c.look(ctx, app, status.Set, release.Status.Plan, release.Spec.Revision, prunedBy(release.Spec.Revision, &release.Status, status.Set))
		if err != nil {
			return err
		}
		seen = &v
	}
	v := *seen
	if v.missing || v.broken != "" || release.Status.Plan == nil {
		return nil
	}
	refused, err := c.router.Write(ctx, accountOf(app), v.sharing, &v.memory.unrouted)
	if refused {
		c.queue.Add(cache.MetaObjectToName(app))
	}
	if err != nil {
		return fmt.Errorf("bring about Release %s/%s: %w", release.Namespace, release.Name, err)
	}
	before := v.memory.objects.Failures()
	order := objects.Order{
		Account: accountOf(app), Owner: ownerOf(app),
		Wanted: v.wanted, Present: v.present, Edition: editionOf(status.Edits),
		Prunes:  release.Status.Plan.Prune || prunesAll(v.set, v.pruned),
		Settled: release.Status.Phase.Ended(), AtOnce: atOnce,
		Releases: release.Spec.Whole() && release.Status.Phase == v1alpha1.ReleaseSucceeded, Drift: driftOf(app, c.Clock.Now()),
		Holds: c.revisions.holdsIn(app.Namespace),
	}
	if !unplaced(app) {
		order.Clusters = sets.KeySet(v.set[delivery.Primary].Clusters)
	}
	err = c.carrier.Carry(ctx, order, &v.memory.objects)
	if v.memory.objects.Unfinished() || !maps.Equal(before, v.memory.objects.Failures()) {
		c.queue.Add(cache.MetaObjectToName(app))
	}
	c.tellUnmade(app, release, v)
	if v.memory.objects.Again() {
		c.queue.AddAfter(cache.MetaObjectToName(app), refusedAgain)
	}
	if refusal := new(objects.RefusedError); errors.As(err, &refusal) {
		c.Recorder.Event(app, corev1.EventTypeWarning, "NotDeleted", delivery.Said(err.Error()))
	}
	if err != nil {
		return fmt.Errorf("bring about Release %s/%s: %w", release.Namespace, release.Name, err)
	}
	return c.inspect(ctx, app, order, v.memory)
}

// tellUnmade tells of routes that are to be made and are not. A release that is on its way says so itself; after that nobody else does.
func (c *Controller) tellUnmade(app *v1alpha1.Application, release *v1alpha1.Release, v view) {
	why, failures := v.wanted.Unrouted, v.memory.objects.Failures()
	for _, object := range v.wanted.Objects {
		if object.Variant == v1alpha1.AllVariants && failures[object.Key] != "" {
			why = cmp.Or(why, "spec.traffic.host: "+failures[object.Key])
		}
	}
	if why != v.memory.unmade && why != "" && release.Status.Phase.Ended() {
		c.Recorder.Event(app, corev1.EventTypeWarning, "RouteNotMade", delivery.Said(why))
	}
	v.memory.unmade = why
}

// atOnce is how many objects of an application are written before the release tells how far it is, and heeds what people ask of it.
const atOnce = 1000

// refusedAgain is when what was refused, and may not be any more, is tried again.
const refusedAgain = 30 * time.Second

// editionOf tells what was asked for before from what is asked for again.
func editionOf(edits map[string]int64) string {
	total := int64(0)
	for _, cluster := range slices.Sorted(maps.Keys(edits)) {
		total += edits[cluster]
	}
	return fmt.Sprint(total)
}
