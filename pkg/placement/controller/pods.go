package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// reasonFailedScheduling is the reason of kube-scheduler's event about a pod that no node can run. Tools look for it.
const reasonFailedScheduling = "FailedScheduling"

func unplacedReason(o projection.Object) string {
	if _, ok := o.(*corev1.Pod); ok {
		return reasonFailedScheduling
	}
	return ReasonUnplaced
}

// unschedulable tells of a pod that no cluster can run what kube-scheduler tells of one that no node can run.
func (c *Controller) unschedulable(ctx context.Context, pod *corev1.Pod, message string) error {
	want := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		LastTransitionTime: metav1.Now(),
	}
	next := pod.DeepCopy()
	conditions := &next.Status.Conditions
	i := slices.IndexFunc(*conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	switch {
	case i < 0:
		*conditions = append(*conditions, want)
	case (*conditions)[i].Status == want.Status && (*conditions)[i].Message == message:
		return nil
	default:
		(*conditions)[i] = want
	}
	_, err := c.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
