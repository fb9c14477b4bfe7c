package scripts

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

const (
	// lastLines and lastBytes bound what is read of a log.
	lastLines, lastBytes = 100, 32 << 10
	// logWithin is how long the log of a script is waited for. Its cluster may be gone, and the Job has said how it ended.
	logWithin = 5 * time.Second
)

// last is the last line that a script has written, "" if it is not to be had.
func (s *Scripts) last(ctx context.Context, run Run, job *batchv1.Job) string {
	lines := s.lines(ctx, run, job)
	if len(lines) == 0 {
		return ""
	}
	return delivery.Said(lines[len(lines)-1])
}

// Output are the last lines that the script of a run has written, as far as they are to be had. Its author has chosen them: they are not escaped.
func (s *Scripts) Output(ctx context.Context, run Run) ([]string, error) {
	job, err := s.Jobs.Jobs(run.Release.Namespace).Get(jobName(run))
	if err != nil {
		return nil, fmt.Errorf("read what %s has written: %w", run, err)
	}
	return s.lines(ctx, run, job), nil
}

func (s *Scripts) lines(ctx context.Context, run Run, job *batchv1.Job) []string {
	pod := s.pod(job)
	if pod == nil {
		return nil
	}
	if said, err := s.log(ctx, run, pod); err == nil {
		return linesOf(said)
	}
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil {
			return linesOf(ended.Message)
		}
	}
	return nil
}

func linesOf(said string) []string {
	var out []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-lastLines):]
}

func (s *Scripts) log(ctx context.Context, run Run, pod *corev1.Pod) (string, error) {
	client, err := s.Client(run.Application)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, logWithin)
	defer cancel()
	stream, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, TailLines: ptr.To(int64(lastLines)), LimitBytes: ptr.To(int64(lastBytes)),
	}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	said, err := io.ReadAll(io.LimitReader(stream, lastBytes))
	return string(said), err
}

// pod is the newest pod of a Job, nil if there is none.
func (s *Scripts) pod(job *batchv1.Job) *corev1.Pod {
	pods, err := s.Pods.Pods(job.Namespace).List(labels.SelectorFromSet(labels.Set{batchv1.JobNameLabel: job.Name}))
	if err != nil {
		return nil
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, job) })
	if len(pods) == 0 {
		return nil
	}
	return slices.MaxFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

// waiting is why the pod of a Job does not run, "" if it does or nothing is known.
func (s *Scripts) waiting(job *batchv1.Job) string {
	pod := s.pod(job)
	if pod == nil {
		return "its pod is not there yet"
	}
	for _, status := range pod.Status.ContainerStatuses {
		if wait := status.State.Waiting; wait != nil && wait.Reason != "" {
			return delivery.Said(strings.TrimSuffix(wait.Reason+": "+wait.Message, ": "))
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return delivery.Said(condition.Message)
		}
	}
	return ""
}
