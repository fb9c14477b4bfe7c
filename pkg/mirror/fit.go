package mirror

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

const (
	// mostMirror is from where on a mirror is cut. Pods have some 10 KiB, annotations may have 256.
	mostMirror = 128 << 10
	// mostAnnotations and mostMessage are what is left then of all annotations together and of each message. A container's last words may
	// have 4 KiB.
	mostAnnotations = 32 << 10
	mostMessage     = 1 << 10
	// mostItems is what is left of each list that has one item for each of something else.
	mostItems = 64

	// mostEventMessage and mostWord bound what an event says and is called. The API of events takes 1 KiB and 128 bytes.
	mostEventMessage = 4 << 10
	mostWord         = 253
)

// fitPod cuts the mirror of a pod that is longer than any should be: what the cluster says of it, and not what it is.
func fitPod(mirror *corev1.Pod) {
	if mirror.Size() <= mostMirror {
		return
	}
	fitAnnotations(mirror.Annotations)
	s := &mirror.Status
	s.Message, s.Reason = shortened(s.Message), shortened(s.Reason)
	s.Conditions = atMost(s.Conditions, mostItems)
	for i := range s.Conditions {
		s.Conditions[i].Message, s.Conditions[i].Reason = shortened(s.Conditions[i].Message), shortened(s.Conditions[i].Reason)
	}
	s.PodIPs, s.HostIPs = atMost(s.PodIPs, mostItems), atMost(s.HostIPs, mostItems)
	s.ResourceClaimStatuses = atMost(s.ResourceClaimStatuses, len(mirror.Spec.ResourceClaims))
	s.ContainerStatuses = fitContainers(s.ContainerStatuses, len(mirror.Spec.Containers))
	s.InitContainerStatuses = fitContainers(s.InitContainerStatuses, len(mirror.Spec.InitContainers))
	s.EphemeralContainerStatuses = fitContainers(s.EphemeralContainerStatuses, len(mirror.Spec.EphemeralContainers))
}

func fitContainers(statuses []corev1.ContainerStatus, containers int) []corev1.ContainerStatus {
	statuses = atMost(statuses, containers)
	for i := range statuses {
		s := &statuses[i]
		s.Image, s.ImageID, s.ContainerID = shortened(s.Image), shortened(s.ImageID), shortened(s.ContainerID)
		s.VolumeMounts, s.AllocatedResourcesStatus = atMost(s.VolumeMounts, mostItems), atMost(s.AllocatedResourcesStatus, mostItems)
		for _, state := range []*corev1.ContainerState{&s.State, &s.LastTerminationState} {
			if state.Waiting != nil {
				state.Waiting.Message, state.Waiting.Reason = shortened(state.Waiting.Message), shortened(state.Waiting.Reason)
			}
			if state.Terminated != nil {
				state.Terminated.Message, state.Terminated.Reason = shortened(state.Terminated.Message), shortened(state.Terminated.Reason)
			}
		}
	}
	return statuses
}

// fitClaim does the same for the mirror of a volume claim.
func fitClaim(mirror *corev1.PersistentVolumeClaim) {
	if mirror.Size() <= mostMirror {
		return
	}
	fitAnnotations(mirror.Annotations)
	s := &mirror.Status
	s.Conditions = atMost(s.Conditions, mostItems)
	for i := range s.Conditions {
		s.Conditions[i].Message, s.Conditions[i].Reason = shortened(s.Conditions[i].Message), shortened(s.Conditions[i].Reason)
	}
}

// fitAnnotations drops annotations, the longest first, until they are short enough together. Ours stay.
func fitAnnotations(annotations map[string]string) {
	total := 0
	keys := slices.Collect(maps.Keys(annotations))
	length := func(key string) int { return len(key) + len(annotations[key]) }
	for _, key := range keys {
		total += length(key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(length(b)-length(a), strings.Compare(a, b)) })
	for _, key := range keys {
		if total <= mostAnnotations {
			return
		}
		if !strings.HasPrefix(key, v1alpha1.GroupName+"/") {
			total -= length(key)
			delete(annotations, key)
		}
	}
}

func atMost[T any](items []T, most int) []T { return items[:min(len(items), most)] }

func shortened(said string) string { return cutTo(said, mostMessage) }

// cutTo cuts a text between characters.
func cutTo(said string, most int) string {
	if len(said) <= most {
		return said
	}
	for most > 0 && !utf8.RuneStart(said[most]) {
		most--
	}
	return said[:most]
}

// FitEvent keeps of an event what people read, and nothing that a terminal obeys.
func FitEvent(e *corev1.Event) *corev1.Event {
	e.Labels, e.Annotations, e.ManagedFields, e.OwnerReferences, e.Finalizers, e.Related = nil, nil, nil, nil, nil, nil
	e.Message = cutTo(text.Escape(cutTo(text.WithoutTokens(e.Message), mostEventMessage)), mostEventMessage)
	for _, word := range []*string{&e.Reason, &e.Type, &e.Action, &e.Source.Component, &e.Source.Host, &e.ReportingController, &e.ReportingInstance} {
		*word = text.Line(*word, mostWord)
	}
	e.InvolvedObject.FieldPath = text.Line(e.InvolvedObject.FieldPath, mostMessage)
	return e
}
