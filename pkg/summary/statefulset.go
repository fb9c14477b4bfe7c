package summary

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// StatefulSet returns the status of a StatefulSet whose decision is carried out as the reports say.
//
// What tools conclude from it:
//
//   - observedGeneration is the current generation once every share confirms it, and stays where it was until then.
//   - replicas, readyReplicas and availableReplicas are summed over all clusters that report. updatedReplicas leaves out those of clusters
//     that are no longer in the decision: their ordinals are still to move.
//   - updateRevision and currentRevision name revisions of the logical cluster, one for each template. As with one cluster, the current one
//     is that from which the rollout goes on, and becomes the updated one when all replicas are updated and ready, wherever they are. The
//     two counters beside them count the pods that are of these templates, whatever the clusters call their own revisions.
func StatefulSet(in *appsv1.StatefulSet, from Input) appsv1.StatefulSetStatus {
	w := statefulSet{in: in, whole: wholeOf(from, in.Generation, in.Status.ObservedGeneration, ptr.Deref(in.Spec.Replicas, 1))}
	update := RevisionName(in.Name, projection.TemplateHash(&in.Spec.Template))
	current := in.Status.CurrentRevision
	if current == "" {
		current = update
	}
	status := w.sum(current, update)
	if status.UpdatedReplicas == w.desired && status.ReadyReplicas == w.desired && status.Replicas == w.desired {
		status.CurrentReplicas, current = status.UpdatedReplicas, update
	}
	status.CurrentRevision, status.UpdateRevision = current, update
	status.ObservedGeneration = w.observedGeneration()
	status.CollisionCount = ptr.To(ptr.Deref(in.Status.CollisionCount, 0))
	status.Conditions = w.conditions()
	return status
}

var statefulSetKind = register(row[appsv1.StatefulSet, *appsv1.StatefulSet]{
	resource:  appsv1.SchemeGroupVersion.WithResource("statefulsets"),
	sane:      saneStatefulSet,
	summarise: func(out *appsv1.StatefulSet, from Input) { out.Status = StatefulSet(out, from) },
	count: func(live *appsv1.StatefulSet) ClusterStatus {
		s := live.Status
		out := ClusterStatus{Replicas: s.Replicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas, Updated: s.UpdatedReplicas}
		if live.Spec.Ordinals != nil {
			out.Start = live.Spec.Ordinals.Start
		}
		return out
	},
	restore: func(out *appsv1.StatefulSet, last ClusterStatus) {
		out.Status = appsv1.StatefulSetStatus{
			Replicas: last.Replicas, ReadyReplicas: last.Ready, AvailableReplicas: last.Available, UpdatedReplicas: last.Updated,
		}
	},
	observed: func(live *appsv1.StatefulSet) bool { return live.Status.ObservedGeneration >= live.Generation },
	missing:  statefulSetMissing,
	settled: func(live *appsv1.StatefulSet) bool {
		want, s := ptr.Deref(live.Spec.Replicas, 1), live.Status
		return s.ObservedGeneration >= live.Generation && s.Replicas == want && s.AvailableReplicas == want &&
			s.UpdatedReplicas >= updatedAtLeast(live, want)
	},
	history: func(in *appsv1.StatefulSet) History {
		return History{
			Template: &in.Spec.Template, Selector: in.Spec.Selector, Limit: in.Spec.RevisionHistoryLimit,
			Collisions: ptr.Deref(in.Status.CollisionCount, 0),
			HashLabel:  "controller.kubernetes.io/hash",
		}
	},
	collide: func(out *appsv1.StatefulSet, collisions int32) { out.Status.CollisionCount = &collisions },
	rollout: rolloutOf,
})

// rolloutOf asks the controller below only once it has seen the template. Until then a share that was told to wait still does.
func rolloutOf(in *appsv1.StatefulSet, share placement.Share, live *appsv1.StatefulSet) Rollout {
	due := dueIn(in, share)
	s := live.Status
	switch {
	case live.Annotations[v1alpha1.AnnotationTemplate] != projection.TemplateHash(&in.Spec.Template):
		return Rollout{Ahead: due > 0}
	case s.ObservedGeneration < live.Generation:
		return Rollout{Ahead: due > 0 && waits(live)}
	}
	return Rollout{
		Ahead: due > 0 && s.CurrentRevision != s.UpdateRevision && s.UpdatedReplicas == 0,
		Done:  s.UpdatedReplicas >= due && s.AvailableReplicas >= share.Replicas,
	}
}

// waits reports whether a projection was told to update no pods yet.
func waits(live *appsv1.StatefulSet) bool {
	rolling := live.Spec.UpdateStrategy.RollingUpdate
	return rolling != nil && ptr.Deref(rolling.Partition, 0) >= ptr.Deref(live.Spec.Replicas, 1)
}

// updatedAtLeast is how many of the replicas a rollout updates without further ado.
func updatedAtLeast(in *appsv1.StatefulSet, replicas int32) int32 {
	return dueIn(in, placement.Share{Replicas: replicas})
}

// dueIn is how many replicas of a share a rollout updates without further ado.
func dueIn(in *appsv1.StatefulSet, share placement.Share) int32 {
	strategy := in.Spec.UpdateStrategy
	switch {
	case strategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return 0
	case strategy.RollingUpdate != nil:
		return share.Replicas - min(max(ptr.Deref(strategy.RollingUpdate.Partition, 0)-share.Start, 0), share.Replicas)
	}
	return share.Replicas
}

// statefulSet is one StatefulSet over all clusters.
type statefulSet struct {
	whole
	in *appsv1.StatefulSet
}

// sum adds up the counters of all clusters.
func (w statefulSet) sum(current, update string) appsv1.StatefulSetStatus {
	var sum appsv1.StatefulSetStatus
	for _, cluster := range w.clusters {
		report := w.reports[cluster]
		set := live[*appsv1.StatefulSet](report)
		if set == nil {
			continue
		}
		sum.Replicas = addUp(sum.Replicas, set.Status.Replicas)
		sum.ReadyReplicas = addUp(sum.ReadyReplicas, set.Status.ReadyReplicas)
		sum.AvailableReplicas = addUp(sum.AvailableReplicas, set.Status.AvailableReplicas)
		pods := w.podsByRevision(report, set)
		sum.CurrentReplicas = addUp(sum.CurrentReplicas, pods[current])
		if _, decided := w.decision[cluster]; decided {
			sum.UpdatedReplicas = addUp(sum.UpdatedReplicas, w.updatedIn(cluster, set, pods[update]))
		}
	}
	return sum
}

// updatedIn counts the pods of a cluster that are updated, of which so many are of the template that the object has as it stands. A target of a
// revision may have another one.
func (w statefulSet) updatedIn(cluster string, set *appsv1.StatefulSet, asItStands int32) int32 {
	switch {
	case w.decision[cluster].Revision == "":
		return asItStands
	case w.countsAsUpdated(cluster, w.reports[cluster]):
		return set.Status.UpdatedReplicas
	}
	return 0
}

// podsByRevision counts the pods of a cluster by the upstream revisions that they carry out. A StatefulSet tells of two revisions, which
// may be the same.
func (w statefulSet) podsByRevision(report Report, set *appsv1.StatefulSet) map[string]int32 {
	s := set.Status
	updated := w.revisionOf(report, set, s.UpdateRevision)
	out := map[string]int32{updated: s.UpdatedReplicas}
	if s.CurrentRevision != s.UpdateRevision {
		if current := w.revisionOf(report, set, s.CurrentRevision); current != updated {
			out[current] = s.CurrentReplicas
		} else {
			out[current] += s.CurrentReplicas // overrides made two of one
		}
	}
	delete(out, "")
	return out
}

// revisionOf returns the name upstream of what a cluster calls a revision of its own, "" if that is not known.
func (w statefulSet) revisionOf(report Report, set *appsv1.StatefulSet, below string) string {
	hash := report.Revisions[below]
	if below == set.Status.UpdateRevision {
		switch {
		case below == "" && report.current(w.generation): // what is remembered of a silent cluster
			hash = projection.TemplateHash(&w.in.Spec.Template)
		case below != "" && set.Status.ObservedGeneration >= set.Generation:
			hash = set.Annotations[v1alpha1.AnnotationTemplate]
		}
	}
	if hash == "" {
		return ""
	}
	return RevisionName(w.in.Name, hash)
}

// conditions joins those of the clusters, of which there are few: a StatefulSet's controller has no more to say than its counters. What
// somebody else wrote upstream stays.
func (w statefulSet) conditions() []appsv1.StatefulSetCondition {
	said := map[appsv1.StatefulSetConditionType][]statefulSetStatement{}
	var types []appsv1.StatefulSetConditionType
	for _, cluster := range w.clusters {
		set := live[*appsv1.StatefulSet](w.reports[cluster])
		if set == nil {
			continue
		}
		for _, c := range set.Status.Conditions {
			if len(said[c.Type]) == 0 {
				types = append(types, c.Type)
			}
			said[c.Type] = append(said[c.Type], statefulSetStatement{cluster, c})
		}
	}
	var out []appsv1.StatefulSetCondition
	for _, c := range w.in.Status.Conditions {
		if len(said[c.Type]) == 0 && c.Type != appsv1.StatefulSetProgressing {
			out = append(out, c)
		}
	}
	for _, of := range types {
		out = append(out, w.mergeConditions(said[of]))
	}
	return out
}

// statefulSetStatement is what one cluster says in a condition.
type statefulSetStatement struct {
	cluster   string
	condition appsv1.StatefulSetCondition
}

// mergeConditions makes one condition of what the clusters say in theirs of one type: Unknown if they do not agree.
func (w statefulSet) mergeConditions(said []statefulSetStatement) appsv1.StatefulSetCondition {
	out := said[0].condition
	var all blame
	same := true
	for _, s := range said {
		all.add(s.cluster, s.condition.Message)
		same = same && s.condition.Message == out.Message
		if s.condition.Status != out.Status {
			out.Status, out.Reason, same = "Unknown", reasonDiffer, false
		}
		if s.condition.LastTransitionTime.After(out.LastTransitionTime.Time) {
			out.LastTransitionTime = s.condition.LastTransitionTime
		}
	}
	if !same {
		out.Message = all.String()
	}
	for _, old := range w.in.Status.Conditions {
		if old.Type == out.Type && old.Status == out.Status {
			out.LastTransitionTime = old.LastTransitionTime
		}
	}
	return out
}
