package summary

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Deployment returns the status of a Deployment whose decision is carried out as the reports say. Unplaced is the reason why the
// decision is empty, as placement words it; it is ignored otherwise. Now is the time of conditions that change.
//
// What tools conclude from it:
//
//   - observedGeneration is the current generation once every share confirms it, and stays where it was until then. A silent cluster
//     confirms nothing. An unplaced Deployment is observed as soon as the reason is known, so that "rollout status" waits for replicas
//     and not for somebody to look; it never reads as complete, since none of its replicas counts as updated.
//   - Counters are summed over all clusters that report. Those that are no longer in the decision count as old: their replicas are
//     pending termination and never updated. If the decision runs the whole in each of several clusters, counters are in units of
//     spec.replicas: the sum by the number of clusters, rounded so that it is only whole when all are. Tools and autoscalers compare
//     them to spec.replicas, and would wait for ever for the surplus to end, or scale by it.
//   - Available, Progressing and ReplicaFailure speak of the whole; their messages name the clusters that are to blame.
func Deployment(
	in *appsv1.Deployment, decision placement.Decision, reports map[string]Report, unplaced string, now metav1.Time,
) appsv1.DeploymentStatus {
	w := whole{in: in, decision: decision, reports: reports, clusters: clustersOf(reports)}
	if len(decision) == 0 {
		w.unplaced = unplaced
	}
	status := w.counters()
	status.ObservedGeneration = w.observedGeneration()
	status.CollisionCount = in.Status.CollisionCount
	status.Conditions = settleConditions(in.Status.Conditions, w.conditions(), now)
	return status
}

// whole is one Deployment over all clusters.
type whole struct {
	in       *appsv1.Deployment
	decision placement.Decision
	reports  map[string]Report
	unplaced string
	// clusters are those that report, in order.
	clusters []string
}

// desired is the number of replicas that the user asks for.
func (w whole) desired() int32 { return ptr.Deref(w.in.Spec.Replicas, 1) }

// total is the number of replicas in all clusters when the rollout is over.
func (w whole) total() int32 { return max(w.desired(), int32(w.decision.Total())) }

// shares returns the clusters of the decision in order.
func (w whole) shares() []string { return slices.Sorted(maps.Keys(w.decision)) }

// everyShare tells whether the report of every share is as wanted. A share without a report has an empty one.
func (w whole) everyShare(wanted func(Report) bool) bool {
	for cluster := range w.decision {
		if !wanted(w.reports[cluster]) {
			return false
		}
	}
	return true
}

// observedGeneration never goes back, and never beyond the generation of the object.
func (w whole) observedGeneration() int64 {
	generation, before := w.in.Generation, min(w.in.Status.ObservedGeneration, w.in.Generation)
	if len(w.decision) == 0 {
		if w.unplaced != "" || w.desired() == 0 {
			return generation
		}
		return before
	}
	if w.everyShare(func(r Report) bool { return r.answers(generation) }) {
		return generation
	}
	return before
}

// counters sums what the clusters report, in units of spec.replicas.
func (w whole) counters() appsv1.DeploymentStatus {
	sum := w.sum()
	copies := w.copies()
	if copies == 1 {
		return sum
	}
	up := func(n int32) int32 { return (n + copies - 1) / copies }
	sum.Replicas = up(sum.Replicas)
	sum.UnavailableReplicas = up(sum.UnavailableReplicas)
	if sum.TerminatingReplicas != nil {
		sum.TerminatingReplicas = ptr.To(up(*sum.TerminatingReplicas))
	}
	sum.UpdatedReplicas /= copies
	sum.ReadyReplicas /= copies
	sum.AvailableReplicas /= copies
	return sum
}

// copies is how many times the decision runs the whole Deployment.
func (w whole) copies() int32 {
	desired := w.desired()
	for _, share := range w.decision {
		if share.Replicas != desired {
			return 1
		}
	}
	if desired == 0 {
		return 1
	}
	return max(1, int32(len(w.decision)))
}

// sum adds up the counters of all clusters.
func (w whole) sum() appsv1.DeploymentStatus {
	var sum appsv1.DeploymentStatus
	for _, cluster := range w.clusters {
		report := w.reports[cluster]
		status := report.Deployment
		if status == nil {
			continue
		}
		sum.Replicas += status.Replicas
		sum.ReadyReplicas += status.ReadyReplicas
		sum.AvailableReplicas += status.AvailableReplicas
		sum.UnavailableReplicas += status.UnavailableReplicas
		if w.countsAsUpdated(cluster, report) {
			sum.UpdatedReplicas += status.UpdatedReplicas
		}
		if status.TerminatingReplicas != nil {
			sum.TerminatingReplicas = ptr.To(ptr.Deref(sum.TerminatingReplicas, 0) + *status.TerminatingReplicas)
		}
	}
	for cluster, share := range w.decision {
		if w.reports[cluster].Deployment == nil {
			sum.UnavailableReplicas += share.Replicas
		}
	}
	return sum
}

// countsAsUpdated tells whether a cluster's updated replicas are of the template that is wanted now. As long as the generation has not
// been observed, readers know that the counters may be of an older one, as with a single cluster, and keeping them avoids writes that
// say nothing. Once it has been, an older report, from a cluster that a later decision has added, must not make the whole look done.
func (w whole) countsAsUpdated(cluster string, report Report) bool {
	if _, ok := w.decision[cluster]; !ok {
		return false
	}
	return w.in.Status.ObservedGeneration < w.in.Generation || report.current(w.in.Generation)
}

// leaving is the number of replicas in clusters that are not in the decision any more.
func (w whole) leaving() int32 {
	var n int32
	for cluster, report := range w.reports {
		if _, ok := w.decision[cluster]; !ok && report.Deployment != nil {
			n += report.Deployment.Replicas
		}
	}
	return n
}

// complete tells whether every share has rolled out the current generation and nothing old is left. Each cluster keeps saying so when
// pods fail later, as Deployments do.
func (w whole) complete() bool {
	if len(w.decision) == 0 {
		return w.desired() == 0 && w.leaving() == 0
	}
	return w.decision.Total() >= int64(w.desired()) && w.leaving() == 0 && w.everyShare(func(r Report) bool {
		if !r.current(w.in.Generation) || r.Deployment == nil || r.Deployment.Replicas != r.Deployment.UpdatedReplicas {
			return false
		}
		progressing := find(r.Deployment.Conditions, appsv1.DeploymentProgressing)
		return progressing != nil && progressing.Reason == reasonComplete
	})
}

// maxUnavailable is how many of the whole may be unavailable: MaxUnavailable in
// k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go, for the total of replicas.
func (w whole) maxUnavailable() int32 {
	strategy, total := w.in.Spec.Strategy, w.total()
	if strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || strategy.RollingUpdate == nil || total == 0 {
		return 0
	}
	surge, err := fencepost(strategy.RollingUpdate.MaxSurge, total, true)
	if err != nil {
		return 0 // Validation refuses such a value.
	}
	unavailable, err := fencepost(strategy.RollingUpdate.MaxUnavailable, total, false)
	if err != nil {
		return 0
	}
	if surge == 0 && unavailable == 0 {
		return 1
	}
	return min(unavailable, total)
}

func fencepost(in *intstr.IntOrString, total int32, roundUp bool) (int32, error) {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(in, intstr.FromInt32(0)), int(total), roundUp)
	return int32(n), err
}
