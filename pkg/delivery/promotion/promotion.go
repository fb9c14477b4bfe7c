// Package promotion decides what of a pipeline is promoted next.
//
// It goes by the pipeline alone: what its targets run, what was promoted before, and what persons have asked for. So nothing is lost by a restart, and
// whoever decides twice decides the same. An environment gets what all targets of the one before it run and are ready with. That is done once for each
// version: what others put into an environment later stays there until the next one, or until a person asks.
//
// What a person asks for is done as it is asked. One who asks for another version than the newest has the environment held at it: newer ones are not
// promoted to there, nor that one further, until a person asks for one of them.
package promotion

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// Names of strategies in the status.
const (
	PullRequest  = "pull-request"
	Notification = "notification"
	Direct       = "direct"
	// Manual is that of a promotion which a person carries out.
	Manual = "manual"
)

// Decision is what is to be done about a pipeline now.
type Decision struct {
	// Environments are what is to be told of environments by their names, whatever comes of the steps.
	Environments map[string]Told
	// Steps are the promotions that are to be carried out, in the order of environments. Each was told as begun before.
	Steps []Step
	// Begun reports whether there will be steps once it is told that they have begun.
	Begun bool
	// Open are the promotions whose pull requests wait for people, and Refused those that wait for a change of what they go by.
	Open, Refused []Step
	// Condition is the one of type Promoting.
	Condition metav1.Condition
	// Events are what has happened since it was decided last.
	Events []Event
	// Again is when to decide anew though nothing has changed; zero if that is of no use.
	Again time.Time
}

// Told is what is told of an environment, nil for nothing.
type Told struct {
	Waiting   *weave.WaitingStatus
	Promotion *weave.PromotionStatus
}

// Event is what has happened.
type Event struct{ Type, Reason, Message string }

// Reasons of events.
const (
	ReasonWaiting  = "PromotionWaiting"
	ReasonStarted  = "PromotionStarted"
	ReasonVerified = "PromotionVerified"
	ReasonFailed   = "PromotionFailed"
	ReasonRevoked  = "PromotionRevoked"
)

// Step is a promotion that is to be carried out.
type Step struct {
	// Index is that of the environment in the spec.
	Index       int
	Environment string
	Promotion   weave.Promotion
	// Before is what was told of the promotion before this one, nil if there was none.
	Before *weave.PromotionStatus
	// Next is what is told of this one, but for what comes of it.
	Next weave.PromotionStatus
}

// Strategy names how a version is promoted, "" if that is not said.
func Strategy(p weave.Promotion) string {
	switch s := p.Strategy; {
	case s.PullRequest != nil:
		return PullRequest
	case s.Notification != nil:
		return Notification
	case s.Direct != nil:
		return Direct
	case p.Manual:
		return Manual
	}
	return ""
}

// Decide returns what is to be done about a pipeline.
func Decide(p *weave.Pipeline, now time.Time) Decision {
	out := Decision{Environments: map[string]Told{}}
	if why := undecided(p); why != "" {
		for _, e := range p.Spec.Environments {
			out.Environments[e.Name] = toldOf(p.Status.Environments[e.Name])
		}
		out.Condition = condition(p, now, []note{{kind: unknown, says: why}})
		return out
	}
	var notes []note
	before := Observed{State: Unknown}
	for i, e := range p.Spec.Environments {
		t := turn{
			now: now.UTC().Truncate(time.Second), index: i, environment: e, before: before, here: Observe(e, p.Status.Environments[e.Name]),
			promotion: p.PromotionOf(e), paused: p.Status.Paused,
		}
		if i > 0 {
			t.previous = p.Spec.Environments[i-1].Name
			t.fromHeld = held(p.Status.Environments[t.previous])
		}
		if status := p.Status.Environments[e.Name]; status != nil {
			t.status = *status
		}
		t.told = toldOf(&t.status)
		t.decide()
		out.Environments[e.Name] = t.told
		out.Events = append(out.Events, t.events...)
		out.Begun = out.Begun || t.begun
		if t.step != nil {
			out.Steps = append(out.Steps, *t.step)
		}
		if t.open != nil {
			out.Open = append(out.Open, *t.open)
		}
		if t.refused != nil {
			out.Refused = append(out.Refused, *t.refused)
		}
		if !t.again.IsZero() && (out.Again.IsZero() || t.again.Before(out.Again)) {
			out.Again = t.again
		}
		if why := t.status.WebhookDenied; why != "" {
			t.note.says += "; calls of the webhooks about it are refused: " + why
		}
		notes = append(notes, t.note)
		before = t.here
	}
	out.Condition = condition(p, now, notes)
	return out
}

// undecided says why nothing can be decided about a pipeline, "" if it can.
func undecided(p *weave.Pipeline) string {
	if p.Status.ObservedGeneration < p.Generation {
		return "the targets have not been looked at since the pipeline was changed"
	}
	names := map[string]bool{}
	for i, e := range p.Spec.Environments {
		if names[e.Name] {
			return fmt.Sprintf("spec.environments[%d].name: environment %s is there twice", i, e.Name)
		}
		names[e.Name] = true
	}
	return ""
}

// toldOf is what is told of an environment already.
func toldOf(status *weave.EnvironmentStatus) (out Told) {
	if status == nil {
		return out
	}
	if status.WaitingStatus != nil {
		waiting := *status.WaitingStatus
		out.Waiting = &waiting
	}
	if status.Promotion != nil {
		promotion := *status.Promotion
		out.Promotion = &promotion
	}
	return out
}

// held reports whether a person holds an environment at a version.
func held(status *weave.EnvironmentStatus) bool {
	return status != nil && !pending(status) && answers(status) && status.Promotion.Held
}

// answers reports whether the last promotion is what a person has asked for last.
func answers(status *weave.EnvironmentStatus) bool {
	return status.Asked != nil && status.Promotion != nil && status.Promotion.By != "" && status.Promotion.Revision == status.Asked.Revision
}

// pending reports whether what a person has asked for last is still to be done. A promotion that is not asked for is always told with a later time than
// what was asked for before it, see stamp.
func pending(status *weave.EnvironmentStatus) bool {
	ask, promotion := status.Asked, status.Promotion
	switch {
	case ask == nil:
		return false
	case promotion == nil || ask.At.After(promotion.At.Time):
		return true
	case !ask.At.Equal(&promotion.At):
		return false
	}
	return ask.Revision != promotion.Revision || promotion.Phase == weave.PromotionWaiting || promotion.Phase == weave.PromotionRevoked
}

// turn decides about one environment.
type turn struct {
	now         time.Time
	index       int
	environment weave.Environment
	status      weave.EnvironmentStatus
	// previous is the name of the environment before, and before what that runs. fromHeld says that a person holds that one.
	previous  string
	before    Observed
	fromHeld  bool
	here      Observed
	promotion *weave.Promotion
	paused    *weave.Pause

	told    Told
	step    *Step
	begun   bool
	open    *Step
	refused *Step
	events  []Event
	note    note
	again   time.Time
}

// candidate is the version that the environment before has verified, "" if there is none.
func (t *turn) candidate() string {
	if t.index == 0 || t.fromHeld || t.before.State != Verified {
		return ""
	}
	return t.before.Revision
}

// last is what is told of the last promotion.
func (t *turn) last() *weave.PromotionStatus { return t.told.Promotion }

func (t *turn) decide() {
	t.note = note{environment: t.environment.Name, kind: settled, says: t.here.words()}
	t.arrived()
	if t.here.Denied {
		t.says(denied, "nothing is promoted to it: %s", t.here.Message)
		return
	}
	if t.status.Denied != "" {
		t.says(denied, "nothing is promoted to it: %s", t.status.Denied)
		return
	}
	if t.promotion == nil || Strategy(*t.promotion) == "" {
		t.unset()
		return
	}
	switch {
	case pending(&t.status):
		t.asked(*t.status.Asked)
	case t.answered() && undone(t.last()):
		t.carryOut(*t.last())
	case held(&t.status):
		t.hold()
	case t.candidate() == "":
		t.withoutCandidate()
	default:
		t.follow(t.candidate())
	}
}

func (t *turn) answered() bool { return answers(&t.status) }

// arrived notes that the targets run what was promoted to them, or that one has failed with it.
func (t *turn) arrived() {
	last := t.last()
	if last == nil {
		return
	}
	switch {
	case last.Phase != weave.PromotionVerified && t.here.Verified(last.Revision):
		last.Phase, last.Message, last.Refused = weave.PromotionVerified, "", false
		t.event(corev1.EventTypeNormal, ReasonVerified, "%s is verified in %s", last.Revision, t.environment.Name)
	case last.Phase == weave.PromotionStarted && t.here.FailedOn(last.Revision):
		message := delivery.Said(t.here.Message)
		if last.Message != message {
			t.event(corev1.EventTypeWarning, ReasonFailed, "%s in %s: %s", last.Revision, t.environment.Name, message)
		}
		last.Message = message
	case last.Phase == weave.PromotionVerified && t.told.Waiting != nil && t.told.Waiting.Revision == last.Revision:
		t.told.Waiting = nil
	}
}

// unset is for an environment that nothing is promoted to.
func (t *turn) unset() {
	t.told.Waiting = nil
	if last := t.last(); last != nil && last.Phase == weave.PromotionWaiting {
		t.told.Promotion = nil
	}
	switch {
	case pending(&t.status):
		t.says(failing, "%s is asked for by %s, but the pipeline does not say how versions are promoted to it: set spec.promotion.strategy", t.status.Asked.Revision, t.status.Asked.By)
	case t.candidate() != "" && t.here.Revision != t.candidate():
		t.says(unmoved, "nothing is promoted to it")
	}
}

// asked does what a person has asked for.
func (t *turn) asked(ask weave.Ask) {
	next := weave.PromotionStatus{Revision: ask.Revision, By: ask.By, At: t.stamp(&ask), Held: t.deviates(ask.Revision)}
	if t.paused != nil {
		t.says(paused, "%s is asked for by %s, and waits since the pipeline is paused", ask.Revision, ask.By)
		return
	}
	if t.here.Verified(ask.Revision) {
		next.Strategy, next.Phase = Strategy(*t.promotion), weave.PromotionVerified
		t.told.Promotion = &next
		t.clearWaiting(ask.Revision)
		return
	}
	t.clearWaiting(ask.Revision)
	t.carryOut(next)
}

// deviates reports whether a version is another one than what would be promoted.
func (t *turn) deviates(revision string) bool { return t.index > 0 && t.before.Revision != revision }

// clearWaiting takes back that a version waits, which does not any more.
func (t *turn) clearWaiting(revision string) {
	if t.told.Waiting != nil && t.told.Waiting.Revision == revision {
		t.told.Waiting = nil
	}
}

// hold is for an environment that a person holds at a version.
func (t *turn) hold() {
	last, newer := t.last(), t.candidate()
	t.told.Waiting = nil
	if newer == "" || newer == last.Revision {
		t.running(last)
		return
	}
	if t.promotion.Manual {
		t.told.Waiting = &weave.WaitingStatus{Revision: newer}
	}
	t.says(holding, "it is held at %s by %s: %s is not promoted until a person asks for it", last.Revision, last.By, newer)
}

// withoutCandidate is for when the environment before has verified nothing that could be promoted. What waits goes on waiting, unless it has failed there.
func (t *turn) withoutCandidate() {
	last := t.last()
	if waiting := t.told.Waiting; waiting != nil && t.before.FailedOn(waiting.Revision) {
		t.told.Waiting = nil
		t.revoke(waiting.Revision)
	}
	if last != nil && undone(last) && t.before.FailedOn(last.Revision) {
		t.revoke(last.Revision)
	}
	switch {
	case t.told.Waiting != nil:
		t.waits(t.told.Waiting.Revision)
	case last != nil && last.Phase == weave.PromotionStarted:
		t.running(last)
	case last != nil && last.Phase == weave.PromotionRevoked:
		t.says(blocked, "%s is not promoted: %s", last.Revision, last.Message)
	case last != nil && undone(last):
		t.says(blocked, "%s is tried when %s has verified it: %s", last.Revision, t.previous, last.Message)
	case t.fromHeld && t.before.State == Verified && t.before.Revision != t.here.Revision:
		t.says(holding, "what a person holds %s at is not promoted further until a person asks for it", t.previous)
	}
}

// revoke gives up a version that has failed in the environment before.
func (t *turn) revoke(revision string) {
	message := delivery.Said(fmt.Sprintf("it has failed in %s: %s", t.previous, t.before.Message))
	if last := t.last(); last != nil && last.Revision == revision && (last.Phase == weave.PromotionWaiting || undone(last)) {
		last.Phase, last.Message, last.Refused = weave.PromotionRevoked, message, false
	}
	t.event(corev1.EventTypeWarning, ReasonRevoked, "%s is not promoted to %s: %s", revision, t.environment.Name, message)
}

// follow takes the environment to a version that the one before has verified.
func (t *turn) follow(revision string) {
	last := t.last()
	switch {
	case t.here.Revision == revision:
		t.there(revision)
	case last != nil && last.Revision == revision && done(last):
		t.clearWaiting(revision)
		t.running(last)
	case t.promotion.Manual:
		t.wait(revision)
	case t.busy():
		t.running(last)
		t.note.says += fmt.Sprintf("; %s follows it", revision)
	case t.paused != nil:
		t.says(paused, "%s waits since the pipeline is paused by %s", revision, t.paused.By)
	default:
		t.told.Waiting = nil
		next := weave.PromotionStatus{Revision: revision, At: t.stamp(nil)}
		if last != nil && last.Revision == revision && undone(last) {
			next = *last
			next.By, next.Held = "", false
		}
		t.carryOut(next)
	}
}

// done reports whether nothing more is to be done for a promotion. One whose pull request a person has closed is not begun again.
func done(p *weave.PromotionStatus) bool {
	return p.Phase == weave.PromotionStarted || p.Phase == weave.PromotionVerified || p.Phase == weave.PromotionRevoked && p.URL != ""
}

// undone reports whether a promotion was begun, and is still to be carried out.
func undone(p *weave.PromotionStatus) bool {
	return p.Phase == weave.PromotionBegun || p.Phase == weave.PromotionFailed
}

// busy reports whether a version is being verified that a newer one does not overtake.
func (t *turn) busy() bool {
	last := t.last()
	return last != nil && last.Phase == weave.PromotionStarted && !t.promotion.Supersede && !t.here.FailedOn(last.Revision)
}

// there is for an environment that has the version which it is to have, whoever has brought it.
func (t *turn) there(revision string) {
	t.told.Waiting = nil
	last := t.last()
	switch {
	case last == nil:
	case last.Phase == weave.PromotionWaiting && last.Revision == revision:
		last.Phase, last.Message = weave.PromotionStarted, "it is there already"
	case last.Phase == weave.PromotionWaiting:
		last.Phase, last.Message = weave.PromotionRevoked, fmt.Sprintf("%s does not run it any more", t.previous)
	case last.Phase == weave.PromotionStarted && last.Revision != revision && t.here.Verified(revision):
		// Others have brought a newer version, for which none is to wait until the older one is there.
		t.told.Promotion = &weave.PromotionStatus{
			Revision: revision, Strategy: Strategy(*t.promotion), Phase: weave.PromotionVerified, At: t.stamp(nil), Message: "it was there already",
		}
	}
	switch {
	case t.here.FailedOn(revision):
		t.says(blocked, "%s has failed: %s", revision, t.here.Message)
	case !t.here.Verified(revision):
		t.note.kind = verifying
	}
}

// running tells of a promotion that was carried out.
func (t *turn) running(last *weave.PromotionStatus) {
	switch {
	case t.here.Verified(last.Revision):
	case t.here.FailedOn(last.Revision):
		t.says(blocked, "%s has failed: %s", last.Revision, t.here.Message)
	case last.Phase == weave.PromotionRevoked:
		t.says(blocked, "%s is not promoted: %s", last.Revision, last.Message)
	case last.Phase == weave.PromotionVerified:
		t.says(unmoved, "%s was promoted before, and is not again until a person asks for it: %s", last.Revision, t.here.words())
	default:
		t.says(verifying, "%s is promoted (%s%s), and not verified yet: %s", last.Revision, last.Strategy, spaced(last.URL), t.here.words())
		if last.Strategy == PullRequest && Strategy(*t.promotion) == PullRequest && t.paused == nil {
			t.open = t.stepTo(*last)
		}
	}
}

// wait has a version wait for a person.
func (t *turn) wait(revision string) {
	last := t.last()
	if t.told.Waiting == nil || t.told.Waiting.Revision != revision {
		t.event(corev1.EventTypeNormal, ReasonWaiting, "%s waits for a person to promote it to %s", revision, t.environment.Name)
	}
	t.told.Waiting = &weave.WaitingStatus{Revision: revision}
	t.waits(revision)
	if t.busy() {
		return // the status tells of that one until it is verified
	}
	if last != nil && last.Revision == revision && last.Phase != weave.PromotionVerified {
		last.Phase, last.Message, last.Strategy, last.Refused = weave.PromotionWaiting, "", Strategy(*t.promotion), false
		return
	}
	t.told.Promotion = &weave.PromotionStatus{Revision: revision, Strategy: Strategy(*t.promotion), Phase: weave.PromotionWaiting, At: t.stamp(nil)}
}

func (t *turn) waits(revision string) {
	if t.paused != nil {
		t.says(paused, "%s waits for a person to promote it, and the pipeline is paused by %s", revision, t.paused.By)
		return
	}
	t.says(waiting, "%s waits for a person to promote it", revision)
}

// carryOut makes a step of a promotion, unless it has failed and is tried again later. First it is told to have begun: a step that nobody knew of after a crash
// would leave a version in the environment that the status knows nothing of.
func (t *turn) carryOut(next weave.PromotionStatus) {
	if t.paused != nil {
		t.says(paused, "%s waits since the pipeline is paused by %s", next.Revision, t.paused.By)
		return
	}
	if next.Phase == weave.PromotionFailed && next.Refused {
		t.refused = t.stepTo(next)
		t.says(refused, "%s cannot be promoted, and %s: %s", next.Revision, refusedUntil, next.Message)
		return
	}
	if due := next.At.Add(pauses(next.Attempts)); next.Phase == weave.PromotionFailed && t.now.Before(due) {
		t.again = due
		t.says(failing, "%s cannot be promoted, and is tried again: %s", next.Revision, next.Message)
		return
	}
	t.says(promoting, "%s is being promoted", next.Revision)
	if stored := t.status.Promotion; stored != nil && undone(stored) && stored.Revision == next.Revision && stored.By == next.By && stored.At.Equal(&next.At) {
		t.step = t.stepTo(next)
		return
	}
	next.Phase, next.Strategy = weave.PromotionBegun, Strategy(*t.promotion)
	t.told.Promotion, t.begun = &next, true
}

func (t *turn) stepTo(next weave.PromotionStatus) *Step {
	next.Strategy = Strategy(*t.promotion)
	out := &Step{Index: t.index, Environment: t.environment.Name, Promotion: *t.promotion, Next: next}
	if t.status.Promotion != nil {
		before := *t.status.Promotion
		out.Before = &before
	}
	return out
}

// stamp is the time of a promotion that begins now: not before what was asked for, and after it if it is not asked for, so that it is known what was
// answered.
func (t *turn) stamp(ask *weave.Ask) metav1.Time {
	at := t.now
	switch {
	case ask != nil && at.Before(ask.At.Time):
		at = ask.At.Time
	case ask == nil && t.status.Asked != nil && !at.After(t.status.Asked.At.Time):
		at = t.status.Asked.At.Add(time.Second)
	}
	return metav1.NewTime(at)
}

func (t *turn) event(kind, reason, format string, args ...any) {
	t.events = append(t.events, Event{kind, reason, fmt.Sprintf(format, args...)})
}

func (t *turn) says(kind kind, format string, args ...any) {
	t.note.kind, t.note.says = kind, fmt.Sprintf(format, args...)
}

// Pauses between attempts grow from the first to the last.
const (
	firstPause = 2 * time.Second
	lastPause  = 5 * time.Minute
)

// pauses is how long after the beginning the next attempt is made, after so many.
func pauses(attempts int32) (out time.Duration) {
	pause := firstPause
	for range attempts {
		if pause >= lastPause {
			// All that come later are as far apart.
			pause = lastPause
		}
		out += pause
		pause *= 2
	}
	return out
}
