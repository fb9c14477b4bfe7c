package pods

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// sync brings the server of a pod in line with the pod, which is nil if there is none of this name. It returns after which time it is to be
// called again, if something becomes due then.
func (s *Server) sync(ctx context.Context, name cache.ObjectName, now *corev1.Pod) (again time.Duration, err error) {
	running := s.of(name)
	if running != nil && (now == nil || now.UID != running.uid) {
		running.kill() // it was deleted by force
		s.set(name, nil)
		running = nil
	}
	if running != nil && finished(now) {
		running.stop()
		s.set(name, nil)
		running = nil
	}
	if now == nil {
		return 0, nil
	}
	told, err := behaviourOf(now)
	if err != nil {
		return 0, err
	}
	if now.DeletionTimestamp != nil {
		return s.end(ctx, name, now, running, told)
	}
	if running == nil {
		if !serves(now) {
			return 0, nil
		}
		if running, err = startPod(s.cluster, now, told, &s.gate); err != nil {
			return 0, err
		}
		s.set(name, running)
	}
	running.told.Store(&told)
	return s.report(ctx, now, running, told)
}

func (s *Server) of(name cache.ObjectName) *pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name]
}

func (s *Server) set(name cache.ObjectName, p *pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil {
		delete(s.running, name)
		return
	}
	s.running[name] = p
}

// serves reports whether a pod has a server. One that uses the network of its node would need an address that all such pods share.
func serves(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && !pod.Spec.HostNetwork
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// end lets a pod that is being deleted serve for as long as it may, and then stops it and removes it from the API.
func (s *Server) end(ctx context.Context, name cache.ObjectName, now *corev1.Pod, running *pod, told behaviour) (again time.Duration, err error) {
	if running != nil {
		if left := time.Until(endOf(now, told)); left > 0 {
			running.draining.Store(true)
			running.told.Store(&told)
			return left, nil
		}
		running.stop()
		s.set(name, nil)
	}
	options := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &now.UID}}
	err = s.client.CoreV1().Pods(now.Namespace).Delete(ctx, now.Name, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return 0, fmt.Errorf("remove the pod, which has ended: %w", err)
	}
	return 0, nil
}

// endOf returns when a pod that is being deleted stops serving. Its deletion timestamp is when its grace period ends.
func endOf(pod *corev1.Pod, told behaviour) time.Time {
	last := pod.DeletionTimestamp.Time
	if told.drain < 0 {
		return last
	}
	begin := last.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	if end := begin.Add(told.drain); end.Before(last) {
		return end
	}
	return last
}

// report has the status of a pod say whether it is ready.
func (s *Server) report(ctx context.Context, now *corev1.Pod, running *pod, told behaviour) (again time.Duration, err error) {
	starting := told.start - time.Since(running.started)
	ready := starting <= 0 && !told.unready
	if status, changed := withReadiness(&now.Status, ready); changed {
		out := now.DeepCopy()
		out.Status = *status
		_, err := s.client.CoreV1().Pods(now.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("say whether the pod is ready: %w", err)
		}
	}
	return max(0, starting), nil
}

// withReadiness returns the status with another readiness, and whether that is a change.
func withReadiness(status *corev1.PodStatus, ready bool) (out *corev1.PodStatus, changed bool) {
	out = status.DeepCopy()
	want, reason := corev1.ConditionFalse, "ContainersNotReady"
	if ready {
		want, reason = corev1.ConditionTrue, ""
	}
	for i := range out.Conditions {
		c := &out.Conditions[i]
		if (c.Type == corev1.PodReady || c.Type == corev1.ContainersReady) && c.Status != want {
			c.Status, c.Reason, c.LastTransitionTime = want, reason, metav1.Now()
			changed = true
		}
	}
	for i := range out.ContainerStatuses {
		out.ContainerStatuses[i].Ready = ready
	}
	return out, changed
}
