package pods

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a pod that say how its server behaves. They may be changed while it runs. A request says the same for itself alone with
// the query parameters delay and status.
const (
	// AnnotationDelay is how long every answer takes, such as "1500ms".
	AnnotationDelay = "kwok.x-k8s.io/answer-delay"
	// AnnotationStatus is the status code of every answer, such as "503".
	AnnotationStatus = "kwok.x-k8s.io/answer-status"
	// AnnotationStart is how long the pod runs before it is ready.
	AnnotationStart = "kwok.x-k8s.io/start"
	// AnnotationUnready is "true" to have the pod be not ready, as when its probe fails. It goes on answering.
	AnnotationUnready = "kwok.x-k8s.io/unready"
	// AnnotationDrain is how long the pod goes on serving when it is deleted. Without it, and at most, that is its grace period.
	AnnotationDrain = "kwok.x-k8s.io/drain"
)

// behaviour is what annotations and queries ask for.
type behaviour struct {
	delay  time.Duration
	status int
	// start and unready are about being ready, drain about the end; drain is negative for the whole grace period.
	start, drain time.Duration
	unready      bool
}

// behaviourOf reads the annotations of a pod. The error names the one that makes no sense.
func behaviourOf(pod *corev1.Pod) (behaviour, error) {
	b := behaviour{status: http.StatusOK, drain: -1, unready: pod.Annotations[AnnotationUnready] == "true"}
	for name, to := range map[string]*time.Duration{AnnotationDelay: &b.delay, AnnotationStart: &b.start, AnnotationDrain: &b.drain} {
		if err := parseInto(to, pod.Annotations[name], time.ParseDuration); err != nil {
			return behaviour{}, fmt.Errorf("annotation %s: %w", name, err)
		}
	}
	if err := parseInto(&b.status, pod.Annotations[AnnotationStatus], parseStatus); err != nil {
		return behaviour{}, fmt.Errorf("annotation %s: %w", AnnotationStatus, err)
	}
	return b, nil
}

// with returns the behaviour with what a request asks for.
func (b behaviour) with(query url.Values) (behaviour, error) {
	if err := parseInto(&b.delay, query.Get("delay"), time.ParseDuration); err != nil {
		return behaviour{}, fmt.Errorf("query parameter delay: %w", err)
	}
	if err := parseInto(&b.status, query.Get("status"), parseStatus); err != nil {
		return behaviour{}, fmt.Errorf("query parameter status: %w", err)
	}
	return b, nil
}

func parseInto[T any](to *T, text string, parse func(string) (T, error)) error {
	if text == "" {
		return nil
	}
	value, err := parse(text)
	if err == nil {
		*to = value
	}
	return err
}

func parseStatus(text string) (int, error) {
	code, err := strconv.Atoi(text)
	if err == nil && (code < 200 || code > 599) {
		err = fmt.Errorf("%d is not a status code from 200 to 599", code)
	}
	return code, err
}
