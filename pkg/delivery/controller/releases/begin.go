package releases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/routes"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/trials"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/engine"
	"github.com/manifold-dev/manifold/pkg/delivery/planner"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/planning"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/secrets"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

const (
	// defaultProgress is how long a cluster may make no progress, where the application does not say.
	defaultProgress = 10 * time.Minute
	// mostRefused bounds what is said of what is refused, in bytes.
	mostRefused = 1024
	// trialAgain is when what could not be tried is tried again: nobody tells that a kind is served, or a webhook answers.
	trialAgain = 5 * time.Second
	// mostNames bounds what is shown of the names of targets.
	mostNames = 200
)

// waitError says what a release waits for before it can begin.
type waitError struct{ what string }

func (e waitError) Error() string { return e.what }

// refusedError says why a release cannot begin, however long it waits.
type refusedError struct{ what string }

func (e refusedError) Error() string { return e.what }

// begin decides how a release goes, records that, and takes the first step. What it waits for is told.
func (c *Controller) begin(ctx context.Context, s situation, release *v1alpha1.Release) error {
	next := release.Status.DeepCopy()
	next.ObservedGeneration = release.Generation
	revision, err := c.revisions.ApplicationRevisions(s.app.Namespace).Get(release.Spec.Revision)
	if err == nil {
		s.app = effective(s.app, revision)
		err = c.start(ctx, s, release, revision, next)
	}
	if waits := (waitError{}); errors.As(err, &waits) {
		next = release.Status.DeepCopy()
		next.Phase, next.Message = v1alpha1.ReleasePending, delivery.Said(waits.what)
	} else if err != nil {
		return err
	}
	written, err := c.write(ctx, s.app, release, *next)
	if err != nil || written.Status.Sequence == 0 {
		return err
	}
	return c.carryOut(ctx, c.revisions.effective(s.own, written), written, nil)
}

// start writes the beginning of a release into its status.
func (c *Controller) start(
	ctx context.Context, s situation, release *v1alpha1.Release, revision *v1alpha1.ApplicationRevision, next *v1alpha1.ReleaseStatus,
) error {
	next.Sequence, next.StartTime = 1, ptr.To(metav1.NewTime(c.Clock.Now()))
	var current delivery.Set
	var stable *delivery.Set
	if s.last != nil {
		last := read.Status(s.last.Status)
		next.Sequence, current = s.last.Status.Sequence+1, last.Set
		next.BeforeRevision, stable = s.last.Status.BeforeRevision, last.Before
		if s.last.Status.Phase == v1alpha1.ReleaseSucceeded {
			stable = &last.Set
			if s.last.Spec.Whole() { // what some targets have got is not what the application runs
				next.BeforeRevision = s.last.Spec.Revision
			}
		}
	}
	if current == nil {
		current = delivery.Set{}
	}
	delivers(next, revision.Name, s.last)
	plan, err := c.prepare(s.app, release, revision, next.BeforeRevision, current)
	if err == nil {
		// Whoever writes files, or asks for an old revision, was not asked for the right to the Secrets that they name.
		err = secrets.Unstated(&s.own.Spec, plan.Stages, field.NewPath("spec", "pipeline", "stages")).ToAggregate()
	}
	if err != nil {
		var waits waitError
		if errors.As(err, &waits) {
			return err
		}
		finish(next, c.Clock.Now(), v1alpha1.ReleaseFailed, delivery.Said(err.Error()))
		keep(next, s.last)
		return nil
	}
	next.Plan = plan
	value, err := releaseOf(s.app, release, plan, revision)
	value.Commit.Paths = c.revisions.changed(value.Stages, s.app, next.BeforeRevision, revision.Name)
	if err != nil {
		finish(next, c.Clock.Now(), v1alpha1.ReleaseFailed, delivery.Said(err.Error()))
		keep(next, s.last)
		return nil
	}
	value.Current, value.Stable, value.Otherwise = current, stable, c.revisions.otherwise(release.Namespace, next.BeforeDeliveryRevision, revision.Name)
	if value.Leaves, err = c.clusters.leaves(s.app, release, current); err != nil {
		return err
	}
	result, err := c.firstStep(ctx, s.app, value, release, plan)
	if refused := (refusedError{}); errors.As(err, &refused) {
		plan.Targets = nil // it has come to none
		finish(next, c.Clock.Now(), v1alpha1.ReleaseFailed, text.Line("nothing of it is applied: "+refused.what, mostRefused))
		keep(next, s.last)
		return nil
	}
	if err != nil {
		return err
	}
	read.Write(result.Status, next)
	takenBack(next)
	if result.Status.Targets == nil && s.last != nil { // it has come to none
		next.DeliveryRevision = s.last.DeliveredAs()
	}
	complete(next, c.Clock.Now())
	return nil
}

// prepare decides how a release goes, or says why it cannot go at all.
func (c *Controller) prepare(
	app *v1alpha1.Application, release *v1alpha1.Release, revision *v1alpha1.ApplicationRevision, before string, current delivery.Set,
) (*v1alpha1.ReleasePlan, error) {
	if err := knownTargets(app, release); err != nil {
		return nil, err
	}
	plan, err := c.plan(app, release, revision, before)
	if err != nil {
		return nil, err
	}
	return plan, c.revisions.tellable(app, plan, current)
}

// knownTargets refuses a release to targets that the application does not have.
func knownTargets(app *v1alpha1.Application, release *v1alpha1.Release) error {
	known := []string{v1alpha1.DefaultTarget}
	if !unplaced(app) {
		known = nil
		for _, target := range app.Spec.Targets {
			known = append(known, target.Name)
		}
	}
	for i, name := range release.Spec.Targets {
		if !slices.Contains(known, name) {
			return fmt.Errorf("spec.targets[%d]: Application %s has no target %q; it has %s", i, app.Name, name, text.Line(strings.Join(known, ", "), mostNames))
		}
	}
	return nil
}

// firstStep is the first one of a release, of which nothing is refused as far as can be told before.
func (c *Controller) firstStep(
	ctx context.Context, app *v1alpha1.Application, value delivery.Release, release *v1alpha1.Release, plan *v1alpha1.ReleasePlan,
) (engine.Result, error) {
	seen, err := c.firstSight(ctx, app, &value, release)
	if err != nil {
		return engine.Result{}, err
	}
	result := engine.Next(value, delivery.Status{}, seen, c.Clock.Now())
	if result.Status.Phase.Ended() {
		return result, nil
	}
	if err := c.served(ctx, app, plan, value.Revision, result.Status.Targets); err != nil {
		return result, err
	}
	if err := c.routable(ctx, app, plan, value, result.Status, seen); err != nil {
		return result, err
	}
	trial := c.trial(app, release, value, plan)
	if err := c.try(ctx, app, trial, result.Status.Targets); err != nil {
		return result, err
	}
	return result, c.deletable(ctx, app, trial, plan, result.Status.Targets)
}

// trial is what is asked about a release.
func (c *Controller) trial(app *v1alpha1.Application, release *v1alpha1.Release, value delivery.Release, plan *v1alpha1.ReleasePlan) trials.Trial {
	return trials.Trial{
		UID: release.UID, Memory: &c.memories.of(app).trial, Clock: c.Clock,
		Application: c.describe(app, plan, nil), Release: value, Complete: c.Complete,
		Contents: c.revisions.contentsIn(app.Namespace), Hash: c.revisions.hashIn(app.Namespace),
		Present: func(key wanted.Key) metav1.Object {
			present, _ := c.store.Get(app.Namespace, key)
			return present
		},
		Server: func(ctx context.Context, object wanted.Object) (objects.Trial, error) {
			return c.carrier.Try(ctx, accountOf(app), ownerOf(app), object)
		},
	}
}

// try returns a refusedError where the server would not take a release in these places, and a waitError where that cannot be told.
func (c *Controller) try(ctx context.Context, app *v1alpha1.Application, trial trials.Trial, places []delivery.Place) error {
	refused, err := trial.Run(ctx, places)
	if refused != "" || err == nil {
		trial.Memory.Forget()
	}
	switch {
	case refused != "":
		return refusedError{refused}
	case err == nil:
		return nil
	case errors.Is(err, trials.ErrUnfinished):
		c.queue.Add(cache.MetaObjectToName(app)) // others come first
	case !errors.Is(err, contents.ErrMissing):
		c.queue.AddAfter(cache.MetaObjectToName(app), trialAgain)
	}
	return waitError{err.Error()}
}

// keep has a release that could not begin leave what runs as it is.
func keep(next *v1alpha1.ReleaseStatus, last *v1alpha1.Release) {
	if last == nil {
		return
	}
	next.Variants, next.Before, next.DeliveryRevision = last.Status.Variants, last.Status.Before, last.DeliveredAs()
	if last.Status.Phase == v1alpha1.ReleaseSucceeded {
		next.Before = last.Status.Variants
	}
}

// plan decides by what stages a release goes.
func (c *Controller) plan(app *v1alpha1.Application, release *v1alpha1.Release, revision *v1alpha1.ApplicationRevision, before string) (*v1alpha1.ReleasePlan, error) {
	spec := app.Spec
	known, _, errs := read.Stages(read.StagesOf(spec), field.NewPath("spec", "pipeline", "stages"))
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	change := planner.ChangeOf(&spec, known, revision.Spec.Origin)
	change.Asked = string(release.Spec.Strategy)
	var err error
	if change.New, err = c.revisions.rendered(revision); err != nil {
		return nil, err
	}
	var running *v1alpha1.ApplicationRevision
	if old, err := c.revisions.ApplicationRevisions(app.Namespace).Get(before); err == nil && before != "" {
		if change.Old, err = c.revisions.rendered(old); err != nil {
			return nil, err
		}
		running = old
	}
	// That pods are told apart from now on is no new version of them.
	options := read.Copies(spec)
	for _, targets := range []map[string][]*unstructured.Unstructured{change.Old, change.New} {
		for _, objects := range targets {
			copies.Unlabel(objects, options)
		}
	}
	plan := &v1alpha1.ReleasePlan{
		Rollback: spec.Rollback, MinReadySeconds: spec.MinReadySeconds,
		ProgressDeadlineSeconds: ptr.Deref(spec.ProgressDeadlineSeconds, int32(defaultProgress/time.Second)),
	}
	if plan.Rollback.When == "" {
		plan.Rollback.When = v1alpha1.RollbackAny
	}
	if len(spec.Plugins) > 0 {
		err = c.ask(plan, planning.Question{Application: app, Release: release, Revision: revision, Running: running, Change: change})
	} else {
		err = decide(plan, change, spec.Pipeline)
	}
	if err != nil {
		return nil, err
	}
	plan.Prune = read.Prunes(spec, revision.Spec.Delivery, plan.Strategy)
	if err := carriedOut(spec.Traffic, plan.Stages, change.New); err != nil {
		return nil, err
	}
	weights := weightsOf(spec.Targets)
	for _, target := range spec.Targets {
		resolved := v1alpha1.ResolvedTarget{Name: target.Name}
		if weight, has := weights[target.Name]; has {
			resolved.Weight = &weight
		}
		plan.Targets = append(plan.Targets, resolved)
	}
	return plan, nil
}

// decide says by what stages a release goes of which all are built in.
func decide(plan *v1alpha1.ReleasePlan, change planner.Change, pipeline *v1alpha1.Pipeline) error {
	strategy, reason, err := planner.Strategy(change)
	if err != nil {
		return err
	}
	plan.Strategy, plan.Reason = v1alpha1.ReleaseStrategy(strategy), reason
	plan.Stages = []v1alpha1.Stage{{Name: v1alpha1.StageSync, ID: "sync"}}
	if plan.Strategy == v1alpha1.StrategyPipeline {
		plan.Stages = slices.Clone(pipeline.Stages)
		for i := range plan.Stages {
			plan.Stages[i].ID = v1alpha1.StageID(&plan.Stages[i], i)
		}
	}
	return nil
}

// weightsOf are the weights of all targets, none if none of them has one. Those without one share what the others leave.
func weightsOf(targets []v1alpha1.Target) map[string]int32 {
	left, without := int32(100), int32(0)
	for _, target := range targets {
		if target.Weight == nil {
			without++
		} else {
			left -= *target.Weight
		}
	}
	if int(without) == len(targets) {
		return nil
	}
	out := map[string]int32{}
	for _, target := range targets {
		if target.Weight != nil {
			out[target.Name] = *target.Weight
		} else {
			out[target.Name] = max(0, left) / without
		}
	}
	return out
}

// releaseOf is a release as the engine knows it. What was planned when it began counts.
func releaseOf(app *v1alpha1.Application, release *v1alpha1.Release, plan *v1alpha1.ReleasePlan, revision *v1alpha1.ApplicationRevision) (delivery.Release, error) {
	known, _, errs := read.Stages(plan.Stages, field.NewPath("status", "plan", "stages"))
	out := delivery.Release{
		Name: release.Name, Revision: delivery.Revision{Name: revision.Name, Hash: revision.Spec.Hash}, Stages: known,
		MinReady: time.Duration(plan.MinReadySeconds) * time.Second, Progress: time.Duration(plan.ProgressDeadlineSeconds) * time.Second,
		Drain: drainOf(app), Rollback: read.Rollback(plan.Rollback), ByPods: app.Spec.Traffic != nil && app.Spec.Traffic.Method == v1alpha1.TrafficReplicas,
	}
	if origin := revision.Spec.Origin; origin != nil {
		out.Commit.Message = origin.Message
	}
	for _, target := range plan.Targets {
		if target.Weight != nil {
			if out.Weights == nil {
				out.Weights = map[string]int32{}
			}
			out.Weights[target.Name] = *target.Weight
		}
	}
	for i := range out.Stages {
		if copy := out.Stages[i].Copy; copy != nil && routes.ByServices(app.Spec.Traffic) {
			copy.Service = true // it is what weights are about
		}
	}
	for _, target := range read.Targets(app.Spec.Targets) {
		if release.Spec.Whole() || slices.Contains(release.Spec.Targets, target.Name) {
			out.Targets = append(out.Targets, target)
		} else {
			out.Others = append(out.Others, target.Name)
		}
	}
	out.Whole = release.Spec.Whole() && !unplaced(app)
	out.Nowhere = app.Spec.PluginsOnly
	if unplaced(app) {
		out.Targets = []delivery.Target{{Name: v1alpha1.DefaultTarget, Selector: &metav1.LabelSelector{MatchLabels: decidedLabels}}}
	}
	return out, errs.ToAggregate()
}

// drainOf is how long a variant stays that gets no more requests.
func drainOf(app *v1alpha1.Application) time.Duration {
	const usual = 30
	if app.Spec.Traffic == nil {
		return 0
	}
	return time.Duration(ptr.Deref(app.Spec.Traffic.DrainSeconds, usual)) * time.Second
}

// unplaced reports whether placement decides where an application runs.
func unplaced(app *v1alpha1.Application) bool {
	return len(app.Spec.Targets) == 0 && !app.Spec.PluginsOnly
}
