package summary

import (
	"fmt"
	"math"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/manifold-dev/manifold/internal/text"
)

// Bounds are what the logical cluster knows of how much a cluster can have to report.
type Bounds struct {
	// Replicas is the largest number that what the cluster was told can explain, with those that it may have beside them in a rollout.
	Replicas int32
	// Now is the time. What a cluster says happened later has not.
	Now metav1.Time
}

const (
	// plenty bounds counters of which the logical cluster does not know better: no cluster has as many nodes, or pods that end at a time.
	plenty = 1 << 20
	// mostText is how many bytes of a text count, mostReason how many of a reason.
	mostText, mostReason = 1 << 10, 128
	// mostConditions is how many conditions of one object a cluster may tell.
	mostConditions = 16
	// slack is by how many seconds the clock of a cluster may be ahead.
	slack = 3600
	// mostDoubts is how many are told at a time.
	mostDoubts = 4
)

// Sane returns what a cluster reports of in, without what cannot be: counters that overflow, or that what it was told does not explain,
// generations and times to come, addresses that are none, texts without end. Doubts say what was not counted. What is in order is returned as
// it is, and live is never changed. A cluster's nonsense must not keep what the others say from being stored, and nothing that it claims to
// run beyond its share may make replicas elsewhere go.
func (k Kind) Sane(in, live Object, bounds Bounds) (sane Object, doubts []string) {
	return k.sane(in, live, bounds)
}

// doubts are what was not counted.
type doubts struct {
	Bounds
	texts []string
	// worded tells that a text was worded otherwise, which is no reason to doubt it.
	worded bool
}

func (d *doubts) add(format string, args ...any) {
	if len(d.texts) < mostDoubts {
		d.texts = append(d.texts, fmt.Sprintf(format, args...))
	}
}

// number brings a counter down to what is possible.
func (d *doubts) number(what string, n *int32, most int32) {
	if most = max(0, most); *n < 0 || *n > most {
		d.add("%s is %d, and can be %d at most", what, *n, most)
		*n = min(max(*n, 0), most)
	}
}

// maybe is number for a counter that may not be told. The one that live has stays as it is.
func (d *doubts) maybe(what string, n **int32, most int32) {
	if *n == nil {
		return
	}
	value := **n
	if d.number(what, &value, most); value != **n {
		*n = &value
	}
}

// generation takes back that a generation was observed which there is not.
func (d *doubts) generation(observed *int64, generation int64) {
	if *observed < 0 || *observed > generation {
		d.add("observedGeneration is %d of %d", *observed, generation)
		*observed = 0
	}
}

// time replaces a time that has not come, or that no API server writes, by one that is the same whenever it is looked at.
func (d *doubts) time(what string, t, instead metav1.Time) metav1.Time {
	if t.IsZero() || t.Unix() >= 0 && t.Unix() <= d.Now.Unix()+slack {
		return t
	}
	d.add("%s is %d seconds after 1970", what, t.Unix())
	return instead
}

// counted brings the counters of replicas down to what is possible.
func (d *doubts) counted(replicas, ready, available, updated *int32) {
	d.number("replicas", replicas, d.Replicas)
	d.number("readyReplicas", ready, *replicas)
	d.number("availableReplicas", available, *ready)
	d.number("updatedReplicas", updated, *replicas)
}

// condition is what a condition says, of whatever Go type it is.
type condition struct {
	of              string
	status          corev1.ConditionStatus
	reason, message string
	times           [2]metav1.Time
}

var reasonForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_,:./-]*[A-Za-z0-9_])?$`)

// unclear stands for a reason that is none.
const unclear = "Unclear"

// conditionsOfReport returns the conditions of a list that can be, one of each type, and the list itself if it is in order.
func conditionsOfReport[C any](d *doubts, since metav1.Time, list []C, read func(C) condition, write func(*C, condition)) []C {
	var out []C
	var types []string
	fine, told := len(list) <= mostConditions, len(d.texts)
	for _, c := range list {
		is := read(c)
		sane := d.condition(is, since)
		if len(types) == mostConditions || slices.Contains(types, is.of) || sane == (condition{}) {
			fine = false
			continue
		}
		types = append(types, is.of)
		if sane != is {
			d.worded = true
			write(&c, sane)
		}
		out = append(out, c)
	}
	switch {
	case fine && !d.worded && len(d.texts) == told:
		return list
	case fine:
		return out
	}
	d.add("conditions: of %d, only %d are valid", len(list), len(out))
	return out
}

// condition returns a condition as it may be, an empty one if it is none.
func (d *doubts) condition(c condition, since metav1.Time) condition {
	if len(validation.IsQualifiedName(c.of)) > 0 {
		return condition{}
	}
	switch c.status {
	case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
	default:
		return condition{}
	}
	if c.reason != "" && (len(c.reason) > mostReason || !reasonForm.MatchString(c.reason)) {
		c.reason = unclear
	}
	c.message = Text(c.message)
	for i, t := range c.times {
		c.times[i] = d.time("a time of condition "+c.of, t, since)
	}
	return c
}

// Text returns a text of a cluster as it can be shown, and not longer than people read.
func Text(said string) string { return text.Line(text.WithoutTokens(said), mostText) }

// addUp adds counters, up to the largest that there is.
func addUp(a, b int32) int32 {
	return int32(min(max(int64(a)+int64(b), math.MinInt32), math.MaxInt32))
}

// ceil divides, and rounds up.
func ceil(n, by int32) int32 { return int32((int64(n) + int64(by) - 1) / int64(by)) }
