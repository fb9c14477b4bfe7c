package summary

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Deployment returns the status of a Deployment whose decision is carried out as the reports say.
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
func Deployment(in *appsv1.Deployment, from Input) appsv1.DeploymentStatus {
	w := deployment{in: in, whole: wholeOf(from, in.Generation, in.Status.ObservedGeneration, ptr.Deref(in.Spec.Replicas, 1))}
	status := w.counters()
	status.ObservedGeneration = w.observedGeneration()
	status.CollisionCount = in.Status.CollisionCount
	status.Conditions = settleConditions(in.Status.Conditions, w.conditions(), from.Now)
	return status
}

var deploymentKind = register(row[appsv1.Deployment, *appsv1.Deployment]{
	resource:  appsv1.SchemeGroupVersion.WithResource("deployments"),
	sane:      saneDeployment,
	summarise: func(out *appsv1.Deployment, from Input) { out.Status = Deployment(out, from) },
	count: func(live *appsv1.Deployment) ClusterStatus {
		s := live.Status
		return ClusterStatus{Replicas: s.Replicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas, Updated: s.UpdatedReplicas}
	},
	restore: func(out *appsv1.Deployment, last ClusterStatus) {
		out.Status = appsv1.DeploymentStatus{
			Replicas: last.Replicas, ReadyReplicas: last.Ready, AvailableReplicas: last.Available, UpdatedReplicas: last.Updated,
		}
	},
	observed: func(live *appsv1.Deployment) bool { return live.Status.ObservedGeneration >= live.Generation },
	missing:  deploymentMissing,
	settled: func(live *appsv1.Deployment) bool {
		want, s := ptr.Deref(live.Spec.Replicas, 1), live.Status
		return s.ObservedGeneration >= live.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want
	},
})

// deployment is one Deployment over all clusters.
type deployment struct {
	whole
	in *appsv1.Deployment
}

// statusOf is what a cluster says of its share, nil if nothing yet.
func statusOf(r Report) *appsv1.DeploymentStatus {
	if d := live[*appsv1.Deployment](r); d != nil {
		return &d.Status
	}
	return nil
}

// total is the number of replicas in all clusters when the rollout is over.
func (w deployment) total() int32 {
	return max(w.desired, int32(min(w.decision.Total(), math.MaxInt32)))
}

// counters sums what the clusters report, in units of spec.replicas.
func (w deployment) counters() appsv1.DeploymentStatus {
	sum := w.sum()
	copies := w.copies()
	if copies == 1 {
		return sum
	}
	up := func(n int32) int32 { return ceil(n, copies) }
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

// sum adds up the counters of all clusters.
func (w deployment) sum() appsv1.DeploymentStatus {
	var sum appsv1.DeploymentStatus
	for _, cluster := range w.clusters {
		report := w.reports[cluster]
		status := statusOf(report)
		if status == nil {
			continue
		}
		sum.Replicas = addUp(sum.Replicas, status.Replicas)
		sum.ReadyReplicas = addUp(sum.ReadyReplicas, status.ReadyReplicas)
		sum.AvailableReplicas = addUp(sum.AvailableReplicas, status.AvailableReplicas)
		sum.UnavailableReplicas = addUp(sum.UnavailableReplicas, status.UnavailableReplicas)
		if w.countsAsUpdated(cluster, report) {
			sum.UpdatedReplicas = addUp(sum.UpdatedReplicas, status.UpdatedReplicas)
		}
		if status.TerminatingReplicas != nil {
			sum.TerminatingReplicas = ptr.To(addUp(ptr.Deref(sum.TerminatingReplicas, 0), *status.TerminatingReplicas))
		}
	}
	for cluster, share := range w.decision {
		if w.reports[cluster].Live == nil {
			sum.UnavailableReplicas = addUp(sum.UnavailableReplicas, share.Replicas)
		}
	}
	return sum
}

// leaving is the number of replicas in clusters that are not in the decision any more.
func (w deployment) leaving() int32 {
	var n int32
	for cluster, report := range w.reports {
		if _, ok := w.decision[cluster]; !ok && report.Live != nil {
			n = addUp(n, statusOf(report).Replicas)
		}
	}
	return n
}

// complete reports whether every share has rolled out the current generation and nothing old is left. Each cluster keeps saying so when
// pods fail later, as Deployments do.
func (w deployment) complete() bool {
	if len(w.decision) == 0 {
		return w.desired == 0 && w.leaving() == 0
	}
	return w.decision.Total() >= int64(w.desired) && w.leaving() == 0 && !w.anyBehind() && w.everyShare(func(r Report) bool {
		status := statusOf(r)
		if !r.current(w.generation) || status == nil || status.Replicas != status.UpdatedReplicas {
			return false
		}
		progressing := find(status.Conditions, appsv1.DeploymentProgressing)
		return progressing != nil && progressing.Reason == reasonComplete
	})
}

// maxUnavailable is how many of the whole may be unavailable: MaxUnavailable in
// k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go, for the total of replicas.
func (w deployment) maxUnavailable() int32 {
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
