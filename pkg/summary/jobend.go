package summary

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Reasons and messages of Job conditions that are the Job controller's own, in k8s.io/kubernetes/pkg/controller/job/job_controller.go.
const (
	reasonSuspended = "JobSuspended"
	reasonResumed   = "JobResumed"

	messageSuspended = "Job suspended"
	messageResumed   = "Job resumed"
	messageBackoff   = "Job has reached the specified backoff limit"
	messageReached   = "Reached expected number of succeeded pods"
)

// conditions are those that the Job has, and what the shares add to them. The API lets none of an end be taken back.
func (w job) conditions(status *batchv1.JobStatus) []batchv1.JobCondition {
	out := slices.Clone(w.in.Status.Conditions)
	if c := w.suspension(); c != nil {
		out = w.set(out, *c)
	}
	if c := w.criteriaMet(); c != nil && !conditionIs(out, batchv1.JobFailureTarget, corev1.ConditionTrue) {
		out = w.set(out, *c)
	}
	if c := w.failing(status); c != nil && !conditionIs(out, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue) {
		out = w.set(out, *c)
	}
	if c := w.end(out, status); c != nil {
		out = w.set(out, *c)
	}
	return out
}

// set gives a condition its times unless it says so already.
func (w job) set(conditions []batchv1.JobCondition, c batchv1.JobCondition) []batchv1.JobCondition {
	old := findJob(conditions, c.Type)
	if old != nil && old.Status == c.Status {
		return conditions
	}
	c.LastProbeTime, c.LastTransitionTime = w.now, w.now
	if old == nil {
		return append(conditions, c)
	}
	*old = c
	return conditions
}

// criteriaMet is the condition that every share has met what it is to succeed by, nil if not all have.
func (w job) criteriaMet() *batchv1.JobCondition {
	out := &batchv1.JobCondition{
		Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue,
		Reason: batchv1.JobReasonCompletionsReached, Message: messageReached,
	}
	if len(w.decision) == 0 {
		return nil
	}
	for _, cluster := range w.shares() {
		part := w.part(cluster)
		if part == nil || !jobIs(part, batchv1.JobSuccessCriteriaMet) && !jobIs(part, batchv1.JobComplete) {
			return nil
		}
		if c := findJob(part.Conditions, batchv1.JobSuccessCriteriaMet); c != nil && len(w.decision) == 1 {
			out.Reason, out.Message = c.Reason, c.Message
		}
	}
	return out
}

// failing is the condition that the whole cannot succeed any more, nil if it can.
func (w job) failing(status *batchv1.JobStatus) *batchv1.JobCondition {
	out := &batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}
	var messages blame
	for _, cluster := range w.shares() {
		c := failureOf(w.part(cluster))
		if c == nil {
			continue
		}
		if out.Reason == "" {
			out.Reason, out.Message = c.Reason, c.Message
		}
		messages.add(cluster, c.Message)
	}
	switch {
	case len(messages) > 0 && len(w.decision) > 1:
		out.Message = messages.String()
	case len(messages) == 0 && len(w.decision) > 1 && w.copies() == 1 && status.Failed > ptr.Deref(w.in.Spec.BackoffLimit, status.Failed):
		out.Reason, out.Message = batchv1.JobReasonBackoffLimitExceeded, messageBackoff
	case len(messages) == 0:
		return nil
	}
	return out
}

// failureOf returns the condition that tells why a share fails or has failed, nil if it does not.
func failureOf(part *batchv1.JobStatus) *batchv1.JobCondition {
	if part == nil {
		return nil
	}
	for _, of := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		if c := findJob(part.Conditions, of); c != nil && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// end is the last condition of the Job, nil as long as something of it runs or may run.
func (w job) end(conditions []batchv1.JobCondition, status *batchv1.JobStatus) *batchv1.JobCondition {
	if status.Active > 0 || ptr.Deref(status.Terminating, 0) > 0 {
		return nil
	}
	if met := findJob(conditions, batchv1.JobSuccessCriteriaMet); met != nil && met.Status == corev1.ConditionTrue {
		return w.endAs(batchv1.JobComplete, met, func(cluster string) bool {
			part := w.part(cluster)
			return part != nil && jobIs(part, batchv1.JobComplete)
		})
	}
	if target := findJob(conditions, batchv1.JobFailureTarget); target != nil && target.Status == corev1.ConditionTrue {
		return w.endAs(batchv1.JobFailed, target, w.ended)
	}
	return nil
}

// endAs turns the condition that announces an end into that end, if every share is over.
func (w job) endAs(end batchv1.JobConditionType, announced *batchv1.JobCondition, over func(cluster string) bool) *batchv1.JobCondition {
	for cluster := range w.decision {
		if !over(cluster) {
			return nil
		}
	}
	return &batchv1.JobCondition{Type: end, Status: corev1.ConditionTrue, Reason: announced.Reason, Message: announced.Message}
}

// ended reports whether nothing of a share runs or will, now that the whole has failed: no part of it is begun any more.
func (w job) ended(cluster string) bool {
	part := w.part(cluster)
	switch {
	case part == nil:
		return !w.reports[cluster].Stale
	case jobEnd(part) != "":
		return true
	}
	return !w.reports[cluster].Stale && w.suspended() && jobIs(part, batchv1.JobSuspended)
}

// suspension is the condition that the Job is suspended, or no longer, nil if there is nothing new to say of it.
func (w job) suspension() *batchv1.JobCondition {
	suspended, running := len(w.decision) > 0 || w.unplaced != "", false
	for cluster := range w.decision {
		part := w.part(cluster)
		suspended = suspended && part != nil && jobIs(part, batchv1.JobSuspended)
		running = running || part != nil && !jobIs(part, batchv1.JobSuspended)
	}
	switch {
	case w.suspended() && suspended:
		return &batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: reasonSuspended, Message: messageSuspended}
	case !w.suspended() && running && jobIs(&w.in.Status, batchv1.JobSuspended):
		return &batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, Reason: reasonResumed, Message: messageResumed}
	}
	return nil
}
