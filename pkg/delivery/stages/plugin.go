package stages

import (
	"cmp"
	"fmt"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

const (
	// CallTimeout is how long a plugin may take for a stage that does not say: as long as PipeCD gives it.
	CallTimeout = 6 * time.Hour
	// skipGrace is how long a plugin has to end a stage that somebody skips. It asks for what people want every 5 seconds, and knows best how to leave off.
	skipGrace = 15 * time.Second
)

// Call asks for a plugin to run a stage, or to go on running it.
type Call struct {
	// Stage is the ID of the stage.
	Stage string
	// Name is unique in the release: a stage that is tried again has another one.
	Name string
	// Attempt counts the retries.
	Attempt int32
	// Until is when it is given up.
	Until time.Time
}

// timeout is how long a stage may take, 0 if nothing bounds it.
func timeout(stage delivery.Stage) time.Duration {
	if stage.Plugin != "" {
		return cmp.Or(stage.Timeout, CallTimeout)
	}
	return stage.Timeout
}

// plugin has a plugin run the stage, and ends with it. Who has agreed is told the plugin, which says whether that is enough.
func plugin(r *Run) (delivery.Phase, string) {
	r.Of.Approvers = nil
	for _, a := range r.Seen.Orders.Approvals {
		if isAbout(r, a) {
			agrees(r.Of, a)
		}
	}
	name := delivery.ScriptName(r.Stage.ID, r.Of.Attempt)
	outcome := r.Seen.Calls[name]
	by, skipped := r.Seen.Orders.Skip[r.Stage.ID]
	switch {
	case outcome.Phase == delivery.Failed && skipped:
		return delivery.Skipped, "skipped by " + by
	case outcome.Phase.Ended():
		return outcome.Phase, delivery.Said(outcome.Message)
	}
	r.Due.Calls = append(r.Due.Calls, Call{Stage: r.Stage.ID, Name: name, Attempt: r.Of.Attempt, Until: r.Of.Start.Add(timeout(r.Stage))})
	says := fmt.Sprintf("plugin %q runs it", r.Stage.Plugin)
	if outcome.Message != "" {
		says = delivery.Said(outcome.Message)
	}
	if skipped {
		says = "skipped by " + by + ": waiting for plugin " + fmt.Sprintf("%q", r.Stage.Plugin) + " to end it"
	}
	return delivery.Running, says
}

// Leaves reports whether a stage that somebody skips ends at once. A plugin that runs one has some time to end it by itself.
func (r *Run) Leaves() bool {
	if r.Stage.Plugin == "" || r.Of.Phase != delivery.Running {
		return true
	}
	end := r.Seen.Orders.SkipAt[r.Stage.ID].Add(skipGrace)
	if !r.Now.Before(end) {
		return true
	}
	r.Due.by(end)
	return false
}
