package summary

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// daemonSetProgressing is the type of the one condition that Manifold gives a DaemonSet, which has none of its own in Kubernetes. It is
// there, and False, while the DaemonSet is placed nowhere or a cluster cannot hold it.
const daemonSetProgressing appsv1.DaemonSetConditionType = "Progressing"

// DaemonSet returns the status of a DaemonSet that the clusters hold as they report.
//
// What tools conclude from it:
//
//   - observedGeneration is the current generation once every cluster of the decision confirms it, as with a Deployment.
//   - Counters are summed over the clusters of the decision. Each of them is known to want one pod at least as long as it does not say
//     what it wants of the generation that was observed, and so is the whole while it is unplaced: with nothing wanted, everything
//     reads as complete.
//   - Pods in clusters that are no longer in the decision run where they should not: they are misscheduled.
func DaemonSet(in *appsv1.DaemonSet, from Input) appsv1.DaemonSetStatus {
	w := daemonSet{wholeOf(from, in.Generation, in.Status.ObservedGeneration, 1)}
	status := w.counters()
	status.ObservedGeneration = w.observedGeneration()
	status.CollisionCount = in.Status.CollisionCount
	status.Conditions = daemonSetConditions.settle(in.Status.Conditions, w.conditions(), from.Now, string(daemonSetProgressing))
	return status
}

var daemonSetKind = register(row[appsv1.DaemonSet, *appsv1.DaemonSet]{
	resource:  appsv1.SchemeGroupVersion.WithResource("daemonsets"),
	sane:      saneDaemonSet,
	summarise: func(out *appsv1.DaemonSet, from Input) { out.Status = DaemonSet(out, from) },
	count: func(live *appsv1.DaemonSet) ClusterStatus {
		s := live.Status
		return ClusterStatus{
			Replicas: s.DesiredNumberScheduled, Ready: s.NumberReady, Available: s.NumberAvailable, Updated: s.UpdatedNumberScheduled,
		}
	},
	restore: func(out *appsv1.DaemonSet, last ClusterStatus) {
		out.Status = appsv1.DaemonSetStatus{
			DesiredNumberScheduled: last.Replicas, CurrentNumberScheduled: last.Replicas, UpdatedNumberScheduled: last.Updated,
			NumberReady: last.Ready, NumberAvailable: last.Available, NumberUnavailable: max(0, last.Replicas-last.Available),
		}
	},
	observed: func(live *appsv1.DaemonSet) bool { return live.Status.ObservedGeneration >= live.Generation },
	settled: func(live *appsv1.DaemonSet) bool {
		want, s := live.Status.DesiredNumberScheduled, live.Status
		return s.ObservedGeneration >= live.Generation && s.CurrentNumberScheduled == want && s.UpdatedNumberScheduled == want &&
			s.NumberAvailable == want && s.NumberMisscheduled == 0
	},
	turn: daemonsBehind,
	history: func(in *appsv1.DaemonSet) History {
		return History{
			Template: &in.Spec.Template, Selector: in.Spec.Selector, Limit: in.Spec.RevisionHistoryLimit,
			Collisions: ptr.Deref(in.Status.CollisionCount, 0),
			HashLabel:  appsv1.DefaultDaemonSetUniqueLabelKey,
		}
	},
	collide: func(out *appsv1.DaemonSet, collisions int32) { out.Status.CollisionCount = &collisions },
})

var daemonSetConditions = reader[appsv1.DaemonSetCondition]{
	claim: func(c appsv1.DaemonSetCondition) claim {
		return claim{of: string(c.Type), status: c.Status, reason: c.Reason, message: c.Message}
	},
	since: func(c *appsv1.DaemonSetCondition) *metav1.Time { return &c.LastTransitionTime },
}

// daemonSet is one DaemonSet over all clusters.
type daemonSet struct{ whole }

// counters sums what the clusters report.
func (w daemonSet) counters() appsv1.DaemonSetStatus {
	var sum appsv1.DaemonSetStatus
	for _, cluster := range w.clusters {
		d := live[*appsv1.DaemonSet](w.reports[cluster])
		if d == nil {
			continue
		}
		if _, decided := w.decision[cluster]; decided {
			w.add(&sum, cluster, d.Status)
		} else {
			sum.NumberMisscheduled = addUp(sum.NumberMisscheduled, addUp(d.Status.CurrentNumberScheduled, d.Status.NumberMisscheduled))
		}
	}
	unknown := int32(0)
	for cluster := range w.decision {
		if w.reports[cluster].Live == nil {
			unknown++
		}
	}
	if len(w.decision) == 0 && w.unplaced != "" {
		unknown++
	}
	sum.DesiredNumberScheduled = addUp(sum.DesiredNumberScheduled, unknown)
	sum.NumberUnavailable = addUp(sum.NumberUnavailable, unknown)
	return sum
}

// add adds what a cluster of the decision reports.
func (w daemonSet) add(sum *appsv1.DaemonSetStatus, cluster string, status appsv1.DaemonSetStatus) {
	desired, unavailable := status.DesiredNumberScheduled, status.NumberUnavailable
	if w.countsAsUpdated(cluster, w.reports[cluster]) {
		sum.UpdatedNumberScheduled = addUp(sum.UpdatedNumberScheduled, status.UpdatedNumberScheduled)
	} else if desired == 0 {
		desired, unavailable = 1, 1
	}
	sum.DesiredNumberScheduled = addUp(sum.DesiredNumberScheduled, desired)
	sum.NumberUnavailable = addUp(sum.NumberUnavailable, unavailable)
	sum.CurrentNumberScheduled = addUp(sum.CurrentNumberScheduled, status.CurrentNumberScheduled)
	sum.NumberMisscheduled = addUp(sum.NumberMisscheduled, status.NumberMisscheduled)
	sum.NumberReady = addUp(sum.NumberReady, status.NumberReady)
	sum.NumberAvailable = addUp(sum.NumberAvailable, status.NumberAvailable)
}

func (w daemonSet) conditions() []appsv1.DaemonSetCondition {
	reason, message := w.refused()
	if reason == "" {
		return nil
	}
	return []appsv1.DaemonSetCondition{{
		Type: daemonSetProgressing, Status: corev1.ConditionFalse, Reason: reason, Message: message,
	}}
}
