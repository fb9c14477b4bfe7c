package rules

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Tolerates reports whether the policy tolerates a taint of a cluster, and for how long of a NoExecute one: the shortest time that
// a matching toleration names, as in a cluster, and for ever (nil) if none names any. No policy tolerates nothing.
func Tolerates(p *placement.Policy, taint *corev1.Taint) (tolerates bool, seconds *int64) {
	if p == nil {
		return false, nil
	}
	for i := range p.Spec.Tolerations {
		t := &p.Spec.Tolerations[i]
		if !concerns(t, taint) {
			continue
		}
		tolerates = true
		if t.TolerationSeconds != nil && taint.Effect == corev1.TaintEffectNoExecute {
			if bound := max(0, *t.TolerationSeconds); seconds == nil || bound < *seconds {
				seconds = &bound
			}
		}
	}
	return tolerates, seconds
}

// Endures says for how long what runs on a cluster stays there after the taint was put on it. Nothing leaves because of a taint
// that is not NoExecute. The taints of clusters that are silent or not ready are endured for the time of silence unless the policy
// tolerates them; all others end the stay at once.
func Endures(p *placement.Policy, taint *corev1.Taint, silence time.Duration) (stay time.Duration, forever bool) {
	if taint.Effect != corev1.TaintEffectNoExecute {
		return 0, true
	}
	tolerates, seconds := Tolerates(p, taint)
	switch {
	case tolerates && seconds == nil:
		return 0, true
	case tolerates:
		return time.Duration(*seconds) * time.Second, false
	case RepeatsReady(taint):
		return silence, false
	default:
		return 0, false
	}
}

// concerns reports whether a toleration is about a taint. Operators that compare numbers are refused when a policy is written.
func concerns(t *corev1.Toleration, taint *corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	case t.Operator == corev1.TolerationOpEqual || t.Operator == "":
		return t.Value == taint.Value
	default:
		return false
	}
}

// Untolerated finds the first taint of a cluster that keeps new replicas under the policy away; nil if there is none. Tolerations
// are the policy's to give, since those in a pod template speak of nodes. Taints that only repeat the Ready condition are left out
// where that says so already.
func Untolerated(p *placement.Policy, c *placement.Cluster) *corev1.Taint {
	for i := range c.Taints {
		taint := &c.Taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute ||
			RepeatsReady(taint) && c.Ready != metav1.ConditionTrue {
			continue
		}
		if tolerates, _ := Tolerates(p, taint); !tolerates {
			return taint
		}
	}
	return nil
}

// RepeatsReady reports whether the taint is one that Manifold derives from the Ready condition.
func RepeatsReady(taint *corev1.Taint) bool {
	return taint.Key == v1alpha1.TaintNotReady || taint.Key == v1alpha1.TaintUnreachable
}

// nameOf names a taint as kube-scheduler does.
func nameOf(taint *corev1.Taint) string { return fmt.Sprintf("{%s: %s}", taint.Key, taint.Value) }

// evictingTaint is the taint of somebody else's for which what runs on a cluster leaves it; "" if it is drained, removed or not ready.
func evictingTaint(p *placement.Policy, c *placement.Cluster) (name string) {
	for i := range c.Taints {
		taint := &c.Taints[i]
		if taint.Key == v1alpha1.TaintDrain {
			return ""
		}
		if _, forever := Endures(p, taint, 0); !forever && !RepeatsReady(taint) && name == "" {
			name = nameOf(taint)
		}
	}
	return name
}

// Unwelcoming counts the PreferNoSchedule taints of a cluster that the policy does not tolerate.
func Unwelcoming(p *placement.Policy, c *placement.Cluster) (count int64) {
	for i := range c.Taints {
		if taint := &c.Taints[i]; taint.Effect == corev1.TaintEffectPreferNoSchedule {
			if tolerates, _ := Tolerates(p, taint); !tolerates {
				count++
			}
		}
	}
	return count
}
