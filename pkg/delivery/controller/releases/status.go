package releases

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// finish ends a release.
func finish(status *v1alpha1.ReleaseStatus, now time.Time, phase v1alpha1.ReleasePhase, message string) {
	status.Phase, status.Message, status.EndTime = phase, message, ptr.To(metav1.NewTime(now))
	complete(status, now)
}

// complete says by a condition whether a release has reached its targets.
func complete(status *v1alpha1.ReleaseStatus, now time.Time) {
	condition := metav1.Condition{
		Type: v1alpha1.ReleaseComplete, Status: metav1.ConditionUnknown, Reason: string(status.Phase), Message: status.Message,
		ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	}
	if last := meta.FindStatusCondition(status.Conditions, condition.Type); last != nil && last.Status == condition.Status {
		condition.LastTransitionTime = last.LastTransitionTime
	}
	switch {
	case status.Phase == v1alpha1.ReleaseSucceeded:
		condition.Status = metav1.ConditionTrue
	case status.Phase.Ended():
		condition.Status = metav1.ConditionFalse
	default:
		condition.Message = "" // it would change all the time
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// write stores a status, unless it is stored already, and tells what has happened. It returns the release as it is then.
func (c *Controller) write(ctx context.Context, app *v1alpha1.Application, release *v1alpha1.Release, next v1alpha1.ReleaseStatus) (*v1alpha1.Release, error) {
	if equality.Semantic.DeepEqual(release.Status, next) {
		return release, nil
	}
	change := release.DeepCopy()
	change.Status = next
	stored, err := c.Client.DeliveryV1alpha1().Releases(release.Namespace).UpdateStatus(ctx, change, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("write the status of Release %s/%s: %w", release.Namespace, release.Name, err)
	}
	c.written.Mutation(stored)
	c.tell(app, release, stored)
	return stored, nil
}

// reasons are those of the events about what a release comes to.
var reasons = map[v1alpha1.ReleasePhase]string{
	v1alpha1.ReleaseRunning: "ReleaseStarted", v1alpha1.ReleaseRollingBack: "ReleaseRollingBack", v1alpha1.ReleaseSucceeded: "ReleaseSucceeded",
	v1alpha1.ReleaseFailed: "ReleaseFailed", v1alpha1.ReleaseRolledBack: "ReleaseRolledBack", v1alpha1.ReleaseCancelled: "ReleaseCancelled",
	v1alpha1.ReleaseSuperseded: "ReleaseSuperseded",
}

// tell writes events about what has changed.
func (c *Controller) tell(app *v1alpha1.Application, old, now *v1alpha1.Release) {
	if phase := now.Status.Phase; phase != old.Status.Phase && reasons[phase] != "" {
		kind, message := corev1.EventTypeNormal, fmt.Sprintf("release of %s: %s", now.Spec.Revision, phase)
		if now.Status.Message != "" && phase != v1alpha1.ReleaseRunning {
			message += ": " + now.Status.Message
		}
		if phase == v1alpha1.ReleaseFailed || phase == v1alpha1.ReleaseRollingBack {
			kind = corev1.EventTypeWarning
		}
		c.Recorder.Event(now, kind, reasons[phase], message)
		c.Recorder.Event(app, kind, reasons[phase], now.Name+": "+message)
	}
	was := map[string]v1alpha1.StagePhase{}
	for _, stage := range old.Status.Stages {
		was[stage.ID] = stage.Phase
	}
	for _, stage := range now.Status.Stages {
		if stage.Phase == was[stage.ID] || stage.Phase == v1alpha1.StageNotStarted {
			continue
		}
		kind := corev1.EventTypeNormal
		if stage.Phase == v1alpha1.StageFailed {
			kind = corev1.EventTypeWarning
		}
		c.Recorder.Event(now, kind, "Stage"+string(stage.Phase), fmt.Sprintf("stage %s (%s): %s", stage.ID, stage.Name, stage.Message))
	}
}
