// Package status makes what the logical cluster shows of a physical one, the status of its Cluster and a Node, of what has been observed of it; and
// reads of that what placement decides by.
//
// Functions are of their arguments alone: what is observed, and when, comes from package clusters.
package status

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

const (
	reasonImplausible = "Implausible"
	reasonNoAnswer    = "NoAnswer"
)

// Observation is what is known about a cluster at one moment. What is nil or empty is not known, which says nothing against what
// was known before: a cluster that has gone silent still has the nodes that it had.
type Observation struct {
	Ready      *metav1.Condition
	Syncer     *metav1.Condition
	Credential *metav1.Condition
	// TokenSecret is what the token ends with that Credential is about.
	TokenSecret string
	UID         string
	Version     string
	Kinds       []string
	Nodes       *capacity.Nodes
	Classes     *v1alpha1.ClusterClasses
	Requested   corev1.ResourceList
	// Answered reports whether the cluster has answered ever since somebody listens, and Silent is since when it does not, zero while it does.
	Answered bool
	Silent   time.Time
	// Limits are those of the spec.
	Limits corev1.ResourceList
	// Settled is false while more is about to be learned within moments, as right after a connection was made.
	Settled bool
}

// Next returns the status after an observation. Where nothing has changed it equals last.
func Next(last v1alpha1.ClusterStatus, seen Observation, now time.Time) v1alpha1.ClusterStatus {
	next := *last.DeepCopy()
	for _, condition := range [...]*metav1.Condition{seen.Ready, seen.Syncer, seen.Credential} {
		if condition != nil {
			stamped := *condition
			stamped.LastTransitionTime = metav1.NewTime(now)
			if old := meta.FindStatusCondition(next.Conditions, stamped.Type); old != nil && old.Status == stamped.Status && !silentAnew(old, &stamped) {
				stamped.LastTransitionTime = old.LastTransitionTime
			}
			meta.SetStatusCondition(&next.Conditions, stamped)
			meta.FindStatusCondition(next.Conditions, stamped.Type).LastTransitionTime = stamped.LastTransitionTime
		}
	}
	if seen.Credential != nil {
		next.TokenSecret = seen.TokenSecret
	}
	answering(&next, seen)
	if next.UID == "" {
		// Never overwritten: the cluster that joined is the one that this object is about.
		next.UID = seen.UID
	}
	if seen.Version != "" {
		next.KubernetesVersion = seen.Version
	}
	if seen.Kinds != nil {
		next.Kinds = seen.Kinds
	}
	if seen.Classes != nil {
		next.Classes = seen.Classes.DeepCopy()
	}
	if seen.Nodes != nil {
		next.Nodes = seen.Nodes.Count
		next.Capacity = seen.Nodes.Capacity
		next.Topology = seen.Nodes.Topology
		believe(&next, seen, now)
	}
	if seen.Requested != nil && next.Allocatable != nil {
		next.Requested = capacity.Only(seen.Requested, next.Allocatable)
	}
	return next
}

// answering has a condition for a cluster that does not answer, since it did last. Before anything is known of it, what was known is kept.
func answering(next *v1alpha1.ClusterStatus, seen Observation) {
	if seen.Silent.IsZero() && !seen.Answered {
		return
	}
	if seen.Silent.IsZero() {
		meta.RemoveStatusCondition(&next.Conditions, v1alpha1.ClusterAnswering)
		return
	}
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: v1alpha1.ClusterAnswering, Status: metav1.ConditionFalse, Reason: reasonNoAnswer, LastTransitionTime: metav1.NewTime(seen.Silent),
		Message: "the cluster does not answer; its status is the last known one",
	})
}

// believe takes over how large a cluster says that it is, as far as that counts. A condition tells of what does not, as long as there is any.
func believe(next *v1alpha1.ClusterStatus, seen Observation, now time.Time) {
	growth := capacity.Growth{From: next.GrownFrom}
	if next.GrownAt != nil {
		growth.At = next.GrownAt.Time
	}
	belief := capacity.Believe(seen.Nodes.Allocatable, next.Allocatable, growth, seen.Limits, now)
	next.Allocatable = belief.Counted
	if !belief.Growth.At.Equal(growth.At) {
		next.GrownFrom, next.GrownAt = belief.Growth.From, &metav1.Time{Time: belief.Growth.At.Truncate(time.Second)}
	}
	var doubts []string
	if seen.Nodes.Doubt != "" {
		doubts = append(doubts, seen.Nodes.Doubt)
	}
	if belief.Held != "" {
		doubts = append(doubts, fmt.Sprintf("the cluster claims to have more than doubled within %s: %s count until %s; set spec.limits to its real size",
			duration.HumanDuration(capacity.Window), belief.Held, belief.Until.UTC().Format(time.RFC3339)))
	}
	if len(doubts) == 0 {
		meta.RemoveStatusCondition(&next.Conditions, v1alpha1.ClusterCapacityCounted)
		return
	}
	condition := metav1.Condition{
		Type: v1alpha1.ClusterCapacityCounted, Status: metav1.ConditionFalse, Reason: reasonImplausible, Message: strings.Join(doubts, "; "),
		LastTransitionTime: metav1.NewTime(now),
	}
	meta.SetStatusCondition(&next.Conditions, condition)
}

// BeliefEnds is in how long what does not count of a cluster's size is to be looked at again, 0 if all counts.
func BeliefEnds(status v1alpha1.ClusterStatus, now time.Time) time.Duration {
	if status.GrownAt == nil || meta.FindStatusCondition(status.Conditions, v1alpha1.ClusterCapacityCounted) == nil {
		return 0
	}
	return max(0, status.GrownAt.Add(capacity.Window).Sub(now))
}

// silentAnew reports whether a cluster that had answered after a silence has fallen silent again: what has been endured before is over.
func silentAnew(last, next *metav1.Condition) bool {
	return last.Reason == health.ReasonFenced && next.Reason == health.ReasonUnreachable
}

// WriteIn returns how long a changed status may wait before it is written: mere numbers wait until interval has passed since the
// last write, for they change with every pod; all else is written at once.
func WriteIn(last, next v1alpha1.ClusterStatus, sinceWrite, interval time.Duration) time.Duration {
	if sinceWrite >= interval || urgent(last, next) {
		return 0
	}
	return interval - sinceWrite
}

// urgent reports whether more has changed than numbers that were there before.
func urgent(last, next v1alpha1.ClusterStatus) bool {
	if (last.Allocatable == nil) != (next.Allocatable == nil) || (last.Requested == nil) != (next.Requested == nil) {
		return true
	}
	last.Nodes, last.Capacity, last.Allocatable, last.Requested = next.Nodes, next.Capacity, next.Allocatable, next.Requested
	return !equality.Semantic.DeepEqual(last, next)
}

// IsReady reports whether the status says that the cluster is ready.
func IsReady(status v1alpha1.ClusterStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ClusterReady)
}

// Taints returns the taints that count for a cluster: those of its spec, and those that its Ready condition stands for. The
// latter are not written to the spec, which is the user's, but follow from the status wherever taints are read. A cluster that is
// silent drives its workloads out, when they have tolerated that for long enough; one that answers that it is not ready keeps them, and so
// does one that has returned and is fenced: it is no longer waited for in vain.
func Taints(cluster *v1alpha1.Cluster) []corev1.Taint {
	taints := make([]corev1.Taint, 0, len(cluster.Spec.Taints)+1)
	taints = append(taints, cluster.Spec.Taints...)
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return taints
	}
	since := ready.LastTransitionTime
	if ready.Status != metav1.ConditionUnknown {
		return append(taints, corev1.Taint{Key: v1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &since})
	}
	taints = append(taints, corev1.Taint{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &since})
	if ready.Reason == health.ReasonFenced {
		return taints
	}
	return append(taints, corev1.Taint{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &since})
}

// ReadyOf returns the Ready condition of a status, nil if it has none.
func ReadyOf(status v1alpha1.ClusterStatus) *metav1.Condition {
	return meta.FindStatusCondition(status.Conditions, v1alpha1.ClusterReady)
}
