package applications

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/automation"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/drifts"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/state"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
)

// reporter tells how applications are.
type reporter struct {
	view     *view
	client   deliveryclient.ApplicationsGetter
	outcomes *outcomes
	drift    *drifts.Board
	live     Live
	// isNowhere reports whether an object that follows workloads goes to no cluster. It may be nil.
	isNowhere func(projection.Kind, projection.Object) bool
	// told has what there were events about.
	told     *records.Told
	recorder record.EventRecorder
	clock    clock.PassiveClock
}

// show writes the status of an application if it is another one than before.
func (r *reporter) show(ctx context.Context, app *v1alpha1.Application, of automation.State, wrong string) error {
	next := app.DeepCopy()
	r.status(&next.Status, app, of, wrong)
	if equality.Semantic.DeepEqual(next.Status, app.Status) {
		return nil
	}
	if _, err := r.client.Applications(app.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return unlessGone(fmt.Errorf("write the status: %w", err))
	}
	r.tell(app, &next.Status)
	return nil
}

// stays says why an application that is being deleted is still there.
func (r *reporter) stays(ctx context.Context, app *v1alpha1.Application, why string) error {
	next := app.DeepCopy()
	condition := condition(v1alpha1.ApplicationReleased, metav1.ConditionFalse, "NotDeleted", why)
	condition.ObservedGeneration, condition.LastTransitionTime = app.Generation, metav1.NewTime(r.clock.Now())
	if r.told.News(app.UID, "Deleted", why) {
		r.recorder.Event(app, corev1.EventTypeWarning, "NotDeleted", why)
	}
	if !meta.SetStatusCondition(&next.Status.Conditions, *condition) {
		return nil
	}
	_, err := r.client.Applications(app.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return unlessGone(err)
}

// tell has an event for every condition that has turned bad, or whose message about that is another one.
func (r *reporter) tell(app *v1alpha1.Application, status *v1alpha1.ApplicationStatus) {
	for _, kind := range []string{v1alpha1.ApplicationSourceReady, v1alpha1.ApplicationRendered, v1alpha1.ApplicationHonoured, v1alpha1.ApplicationInSync} {
		now := meta.FindStatusCondition(status.Conditions, kind)
		message := ""
		if now != nil && now.Status == metav1.ConditionFalse {
			message = now.Message
		}
		if r.told.News(app.UID, kind, message) && message != "" {
			r.recorder.Event(app, corev1.EventTypeWarning, "Not"+kind, message)
		}
	}
}

// status brings a status up to date.
func (r *reporter) status(into *v1alpha1.ApplicationStatus, app *v1alpha1.Application, of automation.State, wrong string) {
	found := r.outcomes.of(app.UID)
	into.ObservedGeneration = app.Generation
	if found.hash != "" || found.origin != nil {
		into.Source = r.sourceStatus(into.Source, found)
	}
	for _, revision := range r.view.partsOf(app) {
		into.LastRevisionNumber = max(into.LastRevisionNumber, revision.Spec.Number)
	}
	into.LatestRevision = ""
	if latest := of.Latest(); latest != nil {
		into.LatestRevision = latest.Name
	}
	into.WantedRevision, _ = of.Wanted()
	into.LiveRevision = of.Live()
	into.Release, into.ReleasePhase, into.Variants = "", "", nil
	current := of.Current()
	if current != nil {
		into.Release, into.ReleasePhase = current.Name, current.Status.Phase
		into.Variants = state.Variants(current.Status.Variants, sharingOf(read.Spec(app.Spec, r.view.deliveredAs(current)), r.view.contentsOf(app), r.view.silent()))
	}
	drifted, known := r.drift.Of(app.UID)
	into.Drift, into.DriftCount = drift.Status(drifted)
	world := state.World{Release: current, Live: into.LiveRevision, Workloads: workloadsOf(r.view.contentsOf(app)), Silent: r.view.silent()}
	world.Ailing = ailing(objects.CustomsOf(r.view.customs, cache.MetaObjectToName(app)))
	world.Drifted, world.Unclear = whereDrifted(drifted)
	world.Dropped = dropped(app, of)
	world.Nowhere = r.nowhere(app, current)
	into.Targets, into.Plugins = state.Targets(targetsOf(of), world), r.live.Of(app.UID)
	if app.Spec.PluginsOnly {
		into.Targets = nil
	}
	sum(into, changedAbove(drifted))
	for _, condition := range []*metav1.Condition{found.source, found.rendered, found.honoured, r.released(app, into, of, wrong, world.Nowhere), inSync(drifted, known)} {
		if condition != nil {
			condition := *condition
			condition.ObservedGeneration = app.Generation
			condition.LastTransitionTime = metav1.NewTime(r.clock.Now())
			meta.SetStatusCondition(&into.Conditions, condition)
		}
	}
}

func (r *reporter) sourceStatus(before *v1alpha1.SourceStatus, found outcome) *v1alpha1.SourceStatus {
	out := &v1alpha1.SourceStatus{Origin: found.origin, Hash: found.hash}
	if before != nil && before.Hash == out.Hash && equality.Semantic.DeepEqual(before.Origin, out.Origin) {
		return before
	}
	out.Time = &metav1.Time{Time: r.clock.Now()}
	return out
}

// targetsOf are the targets of an application, one where it names none.
func targetsOf(of automation.State) []v1alpha1.Target {
	if len(of.Targets) == 0 {
		return []v1alpha1.Target{{Name: v1alpha1.DefaultTarget}}
	}
	return of.Targets
}

// dropped says where a target that something still runs in is none any more.
func dropped(app *v1alpha1.Application, of automation.State) string {
	by := "spec.targets"
	if latest := of.Latest(); latest != nil && len(app.Spec.Targets) == 0 {
		by = latest.Name + ", the newest revision,"
	}
	return by + " does not have this target any more"
}

// sum tells how all targets are together, those of plugins among them. What somebody has changed above is to be seen also where it reaches no target.
func sum(into *v1alpha1.ApplicationStatus, changedAbove bool) {
	var syncs []v1alpha1.SyncStatus
	var healths []v1alpha1.HealthStatus
	if changedAbove {
		syncs = append(syncs, v1alpha1.OutOfSync)
	}
	for _, target := range into.Targets {
		syncs, healths = append(syncs, target.Sync), append(healths, target.Health)
	}
	for i := range into.Plugins {
		syncs, healths = append(syncs, into.Plugins[i].Sync), append(healths, into.Plugins[i].Health)
	}
	into.Sync, into.Health = state.Sync(syncs), state.Health(healths)
}

// released reports whether the wanted revision runs in all targets, and what of it is nowhere.
func (r *reporter) released(app *v1alpha1.Application, status *v1alpha1.ApplicationStatus, of automation.State, wrong, nowhere string) *metav1.Condition {
	current, open, passed := of.Current(), of.Open(), of.Passed()
	no := func(reason, message string) *metav1.Condition {
		return condition(v1alpha1.ApplicationReleased, metav1.ConditionFalse, reason, message)
	}
	switch {
	case wrong != "":
		return no("NoRelease", wrong)
	case status.LatestRevision == "":
		return no("NoRevision", "there is no revision yet")
	case status.WantedRevision == "" && passed != nil:
		return no("NotTriggered", automation.Untriggered(app, passed))
	case status.WantedRevision == "":
		return no("NotTriggered", "no revision was released yet, and spec.trigger.mode leaves that to somebody: manifold app sync "+app.Name)
	case open != nil:
		return no("Releasing", released(open, "releases"))
	case app.Spec.Suspend && status.LiveRevision != status.WantedRevision:
		return no(reasonSuspended, "the application is suspended")
	case current != nil && current.Spec.Revision == status.WantedRevision && current.Status.Phase != v1alpha1.ReleaseSucceeded:
		return no("Release"+string(current.Status.Phase), released(current, "was to release"))
	case status.LiveRevision != status.WantedRevision:
		return no("NotReleased", status.WantedRevision+" was not released to all targets")
	}
	message := status.LiveRevision + " runs in all targets"
	if app.Spec.PluginsOnly {
		message = status.LiveRevision + " was released by plugins"
	}
	if next := withNext(of.Targets, r.view.clustersNow(), status.Variants); next != "" {
		message += "; " + next
	}
	if passed != nil {
		message += "; " + automation.Untriggered(app, passed)
	}
	if nowhere != "" {
		message += "; " + nowhere
	}
	return condition(v1alpha1.ApplicationReleased, metav1.ConditionTrue, "Released", message)
}

// released says what a release does, and how far it is.
func released(release *v1alpha1.Release, does string) string {
	out := fmt.Sprintf("%s %s %s", release.Name, does, release.Spec.Revision)
	if release.Status.Message != "" {
		out += ": " + release.Status.Message
	}
	return delivery.Said(out)
}
