package stages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// once are the stages that change nothing in clusters. They run once for the whole application.
var once = map[string]func(*Run) (delivery.Phase, string){
	delivery.StageWait:           wait,
	delivery.StageApproval:       approval,
	delivery.StageAnalysis:       analyse,
	delivery.StageScript:         script,
	delivery.StageScriptRollback: script,
}

func wait(r *Run) (delivery.Phase, string) {
	if end := r.Of.Start.Add(r.Stage.Wait); r.Now.Before(end) {
		r.Due.by(end)
		return delivery.Running, fmt.Sprintf("waiting for %s", r.Stage.Wait)
	}
	return delivery.Succeeded, fmt.Sprintf("waited for %s", r.Stage.Wait)
}

// approval counts who has agreed to this attempt since it began, each person once.
func approval(r *Run) (delivery.Phase, string) {
	asked := delivery.Approval{}
	if r.Stage.Approval != nil {
		asked = *r.Stage.Approval
	}
	need := max(1, int(asked.Minimum))
	r.Of.Approvers = nil
	var soonest time.Time
	for _, a := range r.Seen.Orders.Approvals {
		if !isAbout(r, a) || !entitled(asked, a) {
			continue
		}
		if asked.Expiry > 0 {
			end := a.Time.Add(asked.Expiry)
			if !r.Now.Before(end) {
				continue
			}
			if soonest.IsZero() || end.Before(soonest) {
				soonest = end
			}
		}
		agrees(r.Of, a)
	}
	if len(r.Of.Approvers) >= need {
		return delivery.Succeeded, "approved by " + strings.Join(r.Of.Approvers, ", ")
	}
	r.Due.by(soonest)
	r.Due.Approve = append(r.Due.Approve, r.Stage.ID)
	message := fmt.Sprintf("waiting for approval: %d of %d", len(r.Of.Approvers), need)
	if len(asked.Approvers) > 0 {
		message += " of " + strings.Join(asked.Approvers, ", ")
	}
	return delivery.Running, message
}

// isAbout reports whether an approval is about this attempt at the stage.
func isAbout(r *Run, a delivery.Assent) bool {
	// Times that went through an API have lost what is below a second.
	if a.Stage != r.Stage.ID || a.User == "" || a.Time.Before(r.Of.Start.Truncate(time.Second)) {
		return false
	}
	return a.Attempt == 0 || a.Attempt == r.Of.Attempt+1 // the attempt before may have begun and ended in the same second
}

// agrees notes who has agreed, each person once.
func agrees(to *delivery.StageStatus, a delivery.Assent) {
	if !slices.Contains(to.Approvers, a.User) {
		to.Approvers = append(to.Approvers, a.User)
	}
	slices.Sort(to.Approvers)
}

// entitled reports whether an approval counts: it comes from whom the stage names, with a comment if it asks for one.
func entitled(asked delivery.Approval, a delivery.Assent) bool {
	if asked.Comment && strings.TrimSpace(a.Comment) == "" {
		return false
	}
	return len(asked.Approvers) == 0 || slices.ContainsFunc(asked.Approvers, func(name string) bool {
		return v1alpha1.IsApprover(name, a.User, a.Groups)
	})
}

func script(r *Run) (delivery.Phase, string) {
	of, undo := r.Stage.ID, r.Stage.Name == delivery.StageScriptRollback
	if undo {
		of = strings.TrimPrefix(of, delivery.UndoPrefix)
	}
	name := delivery.ScriptName(r.Stage.ID, r.Of.Attempt)
	outcome := r.Seen.Scripts[name]
	if outcome.Phase == delivery.Succeeded || outcome.Phase == delivery.Failed {
		return outcome.Phase, delivery.Said(outcome.Message)
	}
	r.Due.Scripts = append(r.Due.Scripts, Script{Stage: of, Name: name, Undo: undo})
	return delivery.Running, underWay("the script", outcome)
}

// underWay says of a Job that it runs, and what it waits for.
func underWay(what string, job delivery.Outcome) string {
	if job.Message == "" {
		return what + " runs"
	}
	return what + " runs: " + delivery.Said(job.Message)
}
