package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// reasonFailedScheduling is the reason of kube-scheduler's event about a pod that no node can run. Tools look for it.
const reasonFailedScheduling = "FailedScheduling"

func unplacedReason(o projection.Object) string {
	if _, ok := o.(*corev1.Pod); ok {
		return reasonFailedScheduling
	}
	return placement.ReasonUnplaced
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

// mirrorHandler looks again at a workload when a cluster finds no node for one of its pods, or finds one after all. That the time is up
// which is tolerated, the decision tells.
func (c *Controller) mirrorHandler() cache.ResourceEventHandler {
	kind, _ := projection.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	look := func(pod *corev1.Pod) {
		if !kind.Mirror(pod) {
			c.queue.Add(itemOf(kind, pod)) // it is its own workload
		} else if name, known := c.makerOf(pod); known {
			c.queue.Add(name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod := obj.(*corev1.Pod); engine.UnschedulableSince(pod) != nil {
				look(pod)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, after := engine.UnschedulableSince(old.(*corev1.Pod)), engine.UnschedulableSince(obj.(*corev1.Pod))
			if (before == nil) != (after == nil) {
				look(obj.(*corev1.Pod))
			}
		},
		DeleteFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && engine.UnschedulableSince(pod) != nil {
				look(pod)
			}
		},
	}
}

// makerOf returns the workload that a mirrored pod belongs to: its controller, or that of the ReplicaSet which is its controller.
func (c *Controller) makerOf(pod *corev1.Pod) (name item, known bool) {
	of := metav1.Object(pod)
	for range 2 {
		ref := metav1.GetControllerOfNoCopy(of)
		if ref == nil {
			break
		}
		kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if !ok || !kind.Workload {
			break
		}
		name, known = item{kind.Resource, cache.NewObjectName(pod.Namespace, ref.Name)}, true
		maker, exists, _ := c.stores[kind.Resource].GetByKey(name.String())
		if !exists || !kind.Mirror(maker.(projection.Object)) {
			break
		}
		of = maker.(projection.Object)
	}
	return name, known
}
