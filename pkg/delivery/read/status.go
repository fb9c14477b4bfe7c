package read

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Status is the status that the engine continues from, as Write has written it.
func Status(from v1alpha1.ReleaseStatus) delivery.Status {
	out := delivery.Status{
		Phase: delivery.Phase(from.Phase), Message: from.Message, Start: timeOf(from.StartTime), End: timeOf(from.EndTime),
		Edits: maps.Clone(from.Edits), Ending: delivery.Phase(from.EndsAs), Set: setOf(from.Variants),
	}
	if len(from.Before) > 0 {
		out.Before = ptr.To(setOf(from.Before))
	}
	if from.Plan != nil {
		for _, target := range from.Plan.Targets {
			for _, cluster := range target.Clusters {
				out.Targets = append(out.Targets, delivery.Place{Target: target.Name, Cluster: cluster})
			}
		}
	}
	for _, stage := range from.Stages {
		out.Stages = append(out.Stages, stageOf(stage))
	}
	switch from.Phase {
	case "", v1alpha1.ReleasePending:
		out.Phase = delivery.NotStarted
	case v1alpha1.ReleaseSuperseded:
		out.Phase = delivery.Cancelled
	case v1alpha1.ReleaseRolledBack:
		out.Phase = out.Ending
	}
	if out.Phase.Ended() {
		out.RolledBack = rolledBack(out.Stages, from.Plan)
	}
	return out
}

// rolledBack is how a rollback has ended, empty if there was none.
func rolledBack(stages []delivery.StageStatus, plan *v1alpha1.ReleasePlan) delivery.Phase {
	out := delivery.Phase("")
	for _, of := range stages {
		back := of.Name == delivery.StageRollback || of.Name == delivery.StageScriptRollback
		if stage := plan.ByPlugin(of.ID); stage != nil { // whatever it is called
			back = stage.Planned != nil && stage.Planned.Rollback
		}
		switch {
		case !back:
		case !of.Phase.Passed():
			return delivery.Failed
		default:
			out = delivery.Succeeded
		}
	}
	return out
}

func setOf(variants []v1alpha1.Variant) delivery.Set {
	out := delivery.Set{}
	for _, v := range variants {
		variant := delivery.Variant{Suffix: v.Suffix, Service: v.CreateService, Patches: v.Patches, Clusters: map[string]delivery.Part{}}
		for _, c := range v.Clusters {
			revision := delivery.Revision{Name: c.Revision, Hash: c.Hash}
			if c.Revision == "" {
				revision = delivery.Revision{Name: v.Revision, Hash: v.Hash}
			}
			variant.Clusters[c.Cluster] = delivery.Part{Revision: revision, Target: c.Target, Weight: c.Weight, Replicas: maps.Clone(c.Workloads), Traffic: ptr.Deref(c.Traffic, 0), Routed: c.Routed}
		}
		out[v.Name] = variant
	}
	return out
}

func stageOf(from v1alpha1.StageStatus) delivery.StageStatus {
	out := delivery.StageStatus{
		ID: from.ID, Name: from.Name, Phase: delivery.Phase(from.Phase), Message: from.Message, Start: timeOf(from.StartTime), End: timeOf(from.EndTime),
		Attempt: max(0, from.Attempt-1), Approvers: from.Approvers,
	}
	for _, m := range from.Metrics {
		if out.Metrics == nil {
			out.Metrics = map[string]delivery.MetricStatus{}
		}
		out.Metrics[m.Name] = delivery.MetricStatus{Checks: m.Checks, Failures: m.Failures, Last: timeOf(m.LastTime), Message: m.Message}
	}
	for _, t := range from.Targets {
		target := delivery.TargetStatus{
			Place: delivery.Place{Target: t.Name, Cluster: t.Cluster}, Phase: delivery.Phase(t.Phase), Message: t.Message, Revision: t.Revision, Wave: int(t.Wave),
			Start: timeOf(t.StartTime), End: timeOf(t.EndTime), Replicas: t.Workloads, Shares: t.Shares, Progress: t.Progress, Progressed: timeOf(t.ProgressTime),
			ReadySeen: timeOf(t.ReadySince), Drained: timeOf(t.DrainedSince), Ready: t.ReadySince != nil, Pods: t.Ready, Retired: t.Retired,
		}
		switch t.Phase {
		case v1alpha1.TargetPending:
			target.Phase = delivery.NotStarted
		case v1alpha1.TargetUnreachable:
			target.Silent, target.Phase = true, delivery.Running
			if t.StartTime == nil {
				target.Phase = delivery.NotStarted
			}
		}
		out.Targets = append(out.Targets, target)
	}
	return out
}

// Write writes what the engine has found into the status of a release, and leaves the rest of it as it is.
func Write(status delivery.Status, into *v1alpha1.ReleaseStatus) {
	into.Phase, into.Message = releasePhase(status), status.Message
	into.StartTime, into.EndTime = stamp(status.Start), stamp(status.End)
	into.Edits, into.EndsAs = maps.Clone(status.Edits), v1alpha1.ReleasePhase(status.Ending)
	owners := map[string]string{}
	if into.Plan == nil {
		into.Plan = &v1alpha1.ReleasePlan{}
	}
	weights := map[string]*int32{}
	for _, target := range into.Plan.Targets {
		weights[target.Name] = target.Weight
	}
	into.Plan.Targets = nil
	for _, place := range status.Targets {
		owners[place.Cluster] = place.Target
		if n := len(into.Plan.Targets); n == 0 || into.Plan.Targets[n-1].Name != place.Target {
			into.Plan.Targets = append(into.Plan.Targets, v1alpha1.ResolvedTarget{Name: place.Target, Weight: weights[place.Target]})
		}
		last := &into.Plan.Targets[len(into.Plan.Targets)-1]
		last.Clusters = append(last.Clusters, place.Cluster)
	}
	into.Variants, into.Before = variantsOf(status.Set, owners), nil
	if status.Before != nil {
		into.Before = variantsOf(*status.Before, owners)
	}
	metadata := map[string]map[string]string{}
	for _, stage := range into.Stages {
		metadata[stage.ID] = stage.Metadata
	}
	into.Stages = nil
	for _, of := range status.Stages {
		stage := writeStage(of)
		stage.Metadata = metadata[of.ID]
		into.Stages = append(into.Stages, stage)
	}
}

func releasePhase(status delivery.Status) v1alpha1.ReleasePhase {
	switch {
	case status.Phase == "" || status.Phase == delivery.NotStarted:
		return v1alpha1.ReleasePending
	case status.RolledBack == delivery.Succeeded:
		return v1alpha1.ReleaseRolledBack
	}
	return v1alpha1.ReleasePhase(status.Phase)
}

func variantsOf(set delivery.Set, owners map[string]string) []v1alpha1.Variant {
	var out []v1alpha1.Variant
	for _, name := range set.Names() {
		variant := v1alpha1.Variant{Name: name, Suffix: set[name].Suffix, CreateService: set[name].Service, Patches: set[name].Patches}
		for _, cluster := range slices.Sorted(maps.Keys(set[name].Clusters)) {
			part := set[name].Clusters[cluster]
			variant.Clusters = append(variant.Clusters, v1alpha1.VariantCluster{
				Target: cmp.Or(part.Target, owners[cluster]), Cluster: cluster, Revision: part.Revision.Name, Hash: part.Revision.Hash, Weight: part.Weight, Workloads: maps.Clone(part.Replicas),
				Routed: part.Routed, Traffic: ptr.To(part.Traffic),
			})
		}
		out = append(out, variant)
	}
	return out
}

func writeStage(of delivery.StageStatus) v1alpha1.StageStatus {
	out := v1alpha1.StageStatus{
		ID: of.ID, Name: of.Name, Phase: v1alpha1.StagePhase(of.Phase), Message: of.Message, StartTime: stamp(of.Start), EndTime: stamp(of.End), Approvers: of.Approvers,
		Attempt: of.Attempt + 1,
	}
	if of.Phase == delivery.NotStarted && of.Attempt == 0 {
		out.Attempt = 0
	}
	for _, name := range slices.Sorted(maps.Keys(of.Metrics)) {
		m := of.Metrics[name]
		out.Metrics = append(out.Metrics, v1alpha1.MetricStatus{Name: name, Checks: m.Checks, Failures: m.Failures, LastTime: stamp(m.Last), Message: m.Message})
	}
	for _, t := range of.Targets {
		target := v1alpha1.StageTargetStatus{
			Name: t.Target, Cluster: t.Cluster, Wave: int32(t.Wave), Phase: v1alpha1.TargetPhase(t.Phase), Message: t.Message, Revision: t.Revision, Workloads: t.Replicas,
			Shares: t.Shares, DrainedSince: stamp(t.Drained), Progress: t.Progress, StartTime: stamp(t.Start), ProgressTime: stamp(t.Progressed), ReadySince: stamp(t.ReadySeen),
			EndTime: stamp(t.End), Ready: t.Pods, Retired: t.Retired,
		}
		for _, n := range t.Replicas {
			target.Replicas += n
		}
		switch {
		case t.Phase == delivery.Cancelled:
			target.Phase = v1alpha1.TargetSkipped
		case t.Silent && !t.Phase.Ended():
			target.Phase = v1alpha1.TargetUnreachable
		case t.Phase == delivery.NotStarted:
			target.Phase = v1alpha1.TargetPending
		}
		out.Targets = append(out.Targets, target)
	}
	return out
}

// stamp is a time as the API writes it: to the second.
func stamp(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at}
}

func timeOf(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}
