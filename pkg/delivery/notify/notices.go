package notify

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// notice is one thing to tell.
type notice struct {
	event v1alpha1.NotificationEvent
	// about tells notices of one event and one object apart.
	about string
	// time is when it has happened, zero if that is not known.
	time                                             time.Time
	release, revision, stage, target, phase, message string
}

// timed stands before the time in the key of a notice that has one, and so comes once.
const timed = "@"

// key names the notice among those of its object.
func (n notice) key() string {
	out := string(n.event)
	if n.about != "" {
		out += "/" + n.about
	}
	if !n.time.IsZero() {
		out += fmt.Sprintf("%s%d", timed, n.time.Unix())
	}
	return out
}

// ofRelease are the notices of a release as it is.
func ofRelease(release *v1alpha1.Release) []notice {
	status := &release.Status
	var out []notice
	tell := func(event v1alpha1.NotificationEvent, at *metav1.Time, about, stage, message string) {
		if at == nil {
			return // it will be told once it is known when that was
		}
		out = append(out, notice{
			event: event, about: about, time: at.Time, release: release.Name, revision: release.Spec.Revision, stage: stage, phase: string(status.Phase),
			message: delivery.Said(message),
		})
	}
	tell(v1alpha1.EventReleaseStarted, status.StartTime, "", "", "")
	for i := range status.Stages {
		stage := &status.Stages[i]
		switch {
		case stage.Name == v1alpha1.StageRollback && stage.StartTime != nil && status.EndsAs == v1alpha1.ReleaseFailed:
			tell(v1alpha1.EventReleaseFailed, stage.StartTime, stage.ID, "", "it is being taken back: "+status.Message)
		case !status.Plan.WaitsForApproval(stage):
		case stage.Phase == v1alpha1.StageRunning:
			tell(v1alpha1.EventApprovalRequired, stage.StartTime, stage.ID, stage.ID, approvers(status, stage.ID))
		case stage.Phase == v1alpha1.StageSucceeded:
			tell(v1alpha1.EventApproved, stage.EndTime, stage.ID, stage.ID, "approved by "+strings.Join(stage.Approvers, ", "))
		}
	}
	if event, ends := ends[status.Phase]; ends {
		tell(event, status.EndTime, "", "", status.Message)
	}
	return out
}

var ends = map[v1alpha1.ReleasePhase]v1alpha1.NotificationEvent{
	v1alpha1.ReleaseSucceeded:  v1alpha1.EventReleaseSucceeded,
	v1alpha1.ReleaseFailed:     v1alpha1.EventReleaseFailed,
	v1alpha1.ReleaseCancelled:  v1alpha1.EventReleaseCancelled,
	v1alpha1.ReleaseRolledBack: v1alpha1.EventReleaseRolledBack,
}

// approvers says who may approve a stage, and how many have to.
func approvers(status *v1alpha1.ReleaseStatus, id string) string {
	stage, _ := status.Plan.Stage(id)
	switch {
	case stage == nil:
		return ""
	case stage.Plugin != "":
		return strings.Join(stage.Planned.Approvers, ", ") // how many have to agree is for the plugin to say
	}
	decoded, _ := v1alpha1.DecodeOptions(stage, field.NewPath("with"))
	options, ok := decoded.(*v1alpha1.WaitApprovalOptions)
	if !ok || len(options.Approvers) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s", max(1, options.MinApproverNum), strings.Join(options.Approvers, ", "))
}

// ofApplication are the notices of an application as it is. While a release is on its way, targets do not have what is to be there. What somebody has
// changed in the logical cluster is told once, by those targets that it reaches or, if it reaches none, by the application itself.
func ofApplication(app *v1alpha1.Application) []notice {
	var out []notice
	releasing := app.Status.ReleasePhase != "" && !app.Status.ReleasePhase.Ended()
	reaches := false
	for i := range app.Status.Targets {
		target := &app.Status.Targets[i]
		n := notice{about: target.Name, target: target.Name, revision: target.Revision, message: delivery.Said(target.Message)}
		if target.Sync == v1alpha1.OutOfSync && !releasing {
			n.event, reaches = v1alpha1.EventOutOfSync, true
			out = append(out, n)
		}
		if target.Health == v1alpha1.Degraded {
			n.event = v1alpha1.EventDegraded
			out = append(out, n)
		}
	}
	above := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationInSync)
	if above != nil && above.Status == metav1.ConditionFalse && !reaches && !releasing {
		out = append(out, notice{event: v1alpha1.EventOutOfSync, revision: app.Status.LiveRevision, message: delivery.Said(above.Message)})
	}
	return out
}
