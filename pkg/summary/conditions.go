package summary

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Reasons of Deployment conditions. Tools know those of k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go by name.
const (
	reasonAvailable   = "MinimumReplicasAvailable"
	reasonUnavailable = "MinimumReplicasUnavailable"
	reasonComplete    = "NewReplicaSetAvailable"
	reasonUpdated     = "ReplicaSetUpdated"
	reasonTimedOut    = "ProgressDeadlineExceeded"
	reasonPaused      = "DeploymentPaused"

	// ReasonUnplaced is the reason of Progressing=False when no cluster is decided on.
	ReasonUnplaced = "Unplaced"
	// ReasonAwaitsRelease is the reason of Progressing=False when no cluster is to have the Deployment before a release comes to it.
	ReasonAwaitsRelease = "AwaitsRelease"
	// ReasonNotApplied is the reason of Progressing=False when a cluster of the decision cannot hold the Deployment.
	ReasonNotApplied = "NotApplied"
)

// conditions returns those that Manifold writes, in their order and without times.
func (w deployment) conditions() []appsv1.DeploymentCondition {
	out := []appsv1.DeploymentCondition{w.available()}
	if c := w.progressing(); c.Type != "" {
		out = append(out, c)
	}
	if c := w.replicaFailure(); c.Type != "" {
		out = append(out, c)
	}
	return out
}

func (w deployment) available() appsv1.DeploymentCondition {
	c := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable}
	if w.sum().AvailableReplicas >= w.total()-w.maxUnavailable() {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, reasonAvailable, "Deployment has minimum availability."
	} else {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reasonUnavailable, "Deployment does not have minimum availability."
	}
	c.Message += w.silence()
	return c
}

// progressing returns an empty condition for a Deployment without a progress deadline that has nothing to complain about: those have
// no such condition in Kubernetes either. What makes the whole fail goes before what one sees of each share.
func (w deployment) progressing() appsv1.DeploymentCondition {
	c := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing}
	if reason, message := w.blocked(); reason != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
		return c
	}
	if !w.hasProgressDeadline() {
		return appsv1.DeploymentCondition{}
	}
	if w.in.Spec.Paused {
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, reasonPaused, "Deployment is paused"
		return c
	}
	c.Status = corev1.ConditionTrue
	if w.complete() {
		c.Reason, c.Message = reasonComplete, fmt.Sprintf("Deployment %q has successfully progressed.", w.in.Name)
	} else {
		c.Reason, c.Message = reasonUpdated, fmt.Sprintf("Deployment %q is progressing.", w.in.Name)
	}
	if holds := w.holds(); holds != "" {
		c.Reason = reasonUpdated
		c.Message = fmt.Sprintf("Deployment %q is %s.", w.in.Name, holds)
	}
	if w.awaits != "" {
		c.Reason = reasonUpdated
		c.Message = fmt.Sprintf("Deployment %q %s.", w.in.Name, w.awaits)
	}
	if w.move != "" {
		c.Reason = reasonUpdated
		c.Message = fmt.Sprintf("Deployment %q moves: %s.", w.in.Name, w.move)
	}
	c.Message += w.silence()
	return c
}

// blocked returns why the rollout cannot go on, or "". A deadline that passed goes first since tools look for it.
func (w deployment) blocked() (reason, message string) {
	if reason, message = w.nowhere(); reason != "" {
		return reason, message
	}
	var timedOut, problems, failed blame
	var failedReason string
	for _, cluster := range w.shares() {
		report := w.reports[cluster]
		if report.Problem != "" {
			problems.add(cluster, report.Problem)
			continue
		}
		// What a cluster says of an older generation does not stop this one.
		status := statusOf(report)
		if status == nil || max(report.Begun, report.Generation) < w.generation {
			continue
		}
		c := find(status.Conditions, appsv1.DeploymentProgressing)
		switch {
		case c == nil || c.Status != corev1.ConditionFalse:
		case c.Reason == reasonTimedOut:
			timedOut.add(cluster, c.Message)
		default:
			failed.add(cluster, c.Message)
			if failedReason == "" {
				failedReason = c.Reason
			}
		}
	}
	switch {
	case len(timedOut) > 0:
		return reasonTimedOut, timedOut.String()
	case len(problems) > 0:
		return ReasonNotApplied, problems.String()
	}
	return failedReason, failed.String()
}

// hasProgressDeadline is upstream's: the largest number stands for none.
func (w deployment) hasProgressDeadline() bool {
	const none = 1<<31 - 1
	return ptr.Deref(w.in.Spec.ProgressDeadlineSeconds, none) != none
}

// replicaFailure returns an empty condition if no cluster, leaving ones included, fails to make pods.
func (w deployment) replicaFailure() appsv1.DeploymentCondition {
	var failures blame
	var reason string
	for _, cluster := range w.clusters {
		status := statusOf(w.reports[cluster])
		if status == nil {
			continue
		}
		c := find(status.Conditions, appsv1.DeploymentReplicaFailure)
		if c == nil || c.Status != corev1.ConditionTrue {
			continue
		}
		failures.add(cluster, c.Message)
		if reason == "" {
			reason = c.Reason
		}
	}
	if len(failures) == 0 {
		return appsv1.DeploymentCondition{}
	}
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: failures.String(),
	}
}

// find returns the condition of that type, or nil.
func find(conditions []appsv1.DeploymentCondition, of appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range conditions {
		if conditions[i].Type == of {
			return &conditions[i]
		}
	}
	return nil
}

// settleConditions gives the new conditions their times: an unchanged one keeps both, one of the same status keeps that of its last
// transition. Conditions of other types than Manifold writes are someone else's and stay, behind ours.
func settleConditions(before, after []appsv1.DeploymentCondition, now metav1.Time) []appsv1.DeploymentCondition {
	out := make([]appsv1.DeploymentCondition, 0, len(after))
	for _, c := range after {
		c.LastUpdateTime, c.LastTransitionTime = now, now
		if old := find(before, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
			if old.Reason == c.Reason && old.Message == c.Message {
				c.LastUpdateTime = old.LastUpdateTime
			}
		}
		out = append(out, c)
	}
	for _, c := range before {
		switch c.Type {
		case appsv1.DeploymentAvailable, appsv1.DeploymentProgressing, appsv1.DeploymentReplicaFailure:
		default:
			out = append(out, c)
		}
	}
	return out
}
