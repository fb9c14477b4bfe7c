package summary

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claim is what a condition of a workload says. Each kind has a Go type of its own for it, and most have the same fields.
type claim struct {
	of              string
	status          corev1.ConditionStatus
	reason, message string
}

// reader reads the conditions of a kind.
type reader[C any] struct {
	claim func(C) claim
	// since is the time of the last transition.
	since func(*C) *metav1.Time
}

// settle gives the new conditions of a workload their times: one of the same status keeps that of its last transition. Those of before
// whose types are not ours are someone else's, and stay behind ours.
func (r reader[C]) settle(before, after []C, now metav1.Time, ours ...string) []C {
	var out []C
	for _, c := range after {
		*r.since(&c) = now
		for _, old := range before {
			if was, is := r.claim(old), r.claim(c); was.of == is.of && was.status == is.status {
				*r.since(&c) = *r.since(&old)
			}
		}
		out = append(out, c)
	}
	for _, c := range before {
		if !slices.Contains(ours, r.claim(c).of) {
			out = append(out, c)
		}
	}
	return out
}
