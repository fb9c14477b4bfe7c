package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// containerKey tells containers apart, also those of pods that follow one another under the same name, and each of a container's lives.
type containerKey struct {
	pod      types.UID
	name     string
	restarts int32
}

// container is one container of a pod.
type container struct {
	// pod is the pod as it was when the container was asked for last.
	pod *corev1.Pod
	// spec is the part of an ephemeral container's spec that all containers share, too.
	spec corev1.Container
	// dir is its working directory.
	dir string
	// log is what it printed so far.
	log *logBuffer
}

// find returns the container, or the pod's first when the name is empty. The error says what is missing.
func (s *Server) find(ctx context.Context, namespace, podName, name string) (*container, error) {
	pod, err := s.config.Client.CoreV1().Pods(namespace).Get(ctx, podName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("look up pod %s/%s: %w", namespace, podName, err)
	}
	spec, ok := containerSpec(pod, name)
	if !ok {
		return nil, fmt.Errorf("container %q not found in pod %q", name, podName)
	}
	return s.life(pod, spec, restarts(pod, spec.Name)), nil
}

// previous returns the container before its last restart, or false if it was never restarted.
func (s *Server) previous(now *container) (*container, bool) {
	status := containerStatus(now.pod, now.spec.Name)
	if status == nil || status.RestartCount == 0 || status.LastTerminationState.Terminated == nil {
		return nil, false
	}
	return s.life(now.pod, now.spec, status.RestartCount-1), true
}

// life returns one of a container's lives. Its folder outlasts it.
func (s *Server) life(pod *corev1.Pod, spec corev1.Container, restarts int32) *container {
	key := containerKey{pod: pod.UID, name: spec.Name, restarts: restarts}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.containers[key]
	if !ok {
		known = &container{log: newLogBuffer(), dir: filepath.Join(s.config.Dir, string(pod.UID), spec.Name)}
		known.log.append(startTime(pod, spec.Name), fmt.Sprintf("%s/%s: started image %s on node %s of cluster %s",
			pod.Name, spec.Name, spec.Image, pod.Spec.NodeName, s.config.Cluster))
		s.containers[key] = known
	}
	return &container{pod: pod, spec: spec, dir: known.dir, log: known.log}
}

func restarts(pod *corev1.Pod, name string) int32 {
	if status := containerStatus(pod, name); status != nil {
		return status.RestartCount
	}
	return 0
}

// Log adds a line to a container's log, as if the container had printed it.
func (s *Server) Log(ctx context.Context, namespace, pod, container, line string) error {
	target, err := s.find(ctx, namespace, pod, container)
	if err != nil {
		return err
	}
	target.log.append(time.Now(), line)
	return nil
}

func containerSpec(pod *corev1.Pod, name string) (corev1.Container, bool) {
	all := append([]corev1.Container{}, pod.Spec.Containers...)
	all = append(all, pod.Spec.InitContainers...)
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, corev1.Container(c.EphemeralContainerCommon))
	}
	for _, c := range all {
		if name == "" || c.Name == name {
			return c, true
		}
	}
	return corev1.Container{}, false
}

func containerStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
	}
	return nil
}

func startTime(pod *corev1.Pod, name string) time.Time {
	status := containerStatus(pod, name)
	switch {
	case status != nil && status.State.Running != nil:
		return status.State.Running.StartedAt.Time
	case status != nil && status.State.Terminated != nil:
		return status.State.Terminated.StartedAt.Time
	}
	return time.Now()
}

// whilePodLives returns a context that ends with ctx, or when the pod is deleted. The caller calls done when it needs it no more.
func (s *Server) whilePodLives(ctx context.Context, pod *corev1.Pod) (lives context.Context, done func()) {
	lives, cancel := context.WithCancel(ctx)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer cancel()
		for lives.Err() == nil && s.watchPod(lives, pod) {
		}
	}()
	return lives, func() {
		cancel()
		<-finished
	}
}

// watchPod returns false once the pod is gone, and true when the watch ended for another reason.
func (s *Server) watchPod(ctx context.Context, pod *corev1.Pod) bool {
	pods := s.config.Client.CoreV1().Pods(pod.Namespace)
	now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != pod.UID:
		return false
	case err != nil:
		return pause(ctx)
	}
	watcher, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String(),
		ResourceVersion: now.ResourceVersion,
	})
	if err != nil {
		return pause(ctx)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Deleted {
			return false
		}
	}
	return true
}

// pause waits before the next try at an API server that did not answer.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return true
}
