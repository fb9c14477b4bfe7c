package simulate

import (
	"context"
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

// Report is what was found out.
type Report struct {
	// Without are the clusters that were lost.
	Without []string `json:"without,omitempty"`
	// Note is what there is to know beside the workloads.
	Note string `json:"note,omitempty"`
	// Workloads are those of the manifests, and of the others those that would move or lose something.
	Workloads []Entry `json:"workloads"`
	// Unchanged counts the other workloads, and Unplaced those of them that have replicas without a cluster.
	Unchanged int `json:"unchanged,omitempty"`
	Unplaced  int `json:"unplaced,omitempty"`
}

// Entry is one workload.
type Entry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Replicas  int32  `json:"replicas"`
	// Before is where it ran before, if it ran anywhere: with all clusters, if some were lost.
	Before placement.Decision `json:"before,omitempty"`
	// Down is what stays in clusters that are lost, and so does not run.
	Down placement.Decision `json:"down,omitempty"`
	// Steps are what it says on the way to the result, before others have moved.
	Steps []string `json:"steps,omitempty"`
	// Told is what becomes of it on account of others.
	Told []string `json:"told,omitempty"`
	// Result is the decision and what led to it.
	Result placement.Result `json:"result"`
	// Message is the result in one sentence.
	Message string `json:"message"`
	// Remedies say by cluster what would have to change so that it gets some of the workload too.
	Remedies map[string][]string `json:"remedies,omitempty"`

	// first is the ordinal of the first replica.
	first int32
	// asked tells that it is one of the manifests.
	asked bool
}

// mostSilent is what to know when nothing is placed elsewhere because too many clusters are lost at once.
const mostSilent = "most clusters do not answer at the same time, so nothing is moved off them: more likely the logical cluster itself is cut off"

// simulate places all workloads, and then once more without the clusters that are lost.
func (w *world) simulate(ctx context.Context, lost []string) (*Report, error) {
	refs, err := w.workloads()
	if err != nil {
		return nil, err
	}
	if err := w.found(); err != nil {
		return nil, err
	}
	found, err := w.settle(ctx, refs)
	if err != nil {
		return nil, err
	}
	report := &Report{Without: lost}
	if len(lost) > 0 {
		if err := w.silence(lost); err != nil {
			return nil, err
		}
		if found, err = w.settle(ctx, refs); err != nil {
			return nil, err
		}
		if len(lost) > 1 && stays(found, lost) {
			report.Note = mostSilent
		}
	}
	for _, ref := range refs {
		o := found.of(ref)
		if !o.decided {
			continue
		}
		kind, object, _ := w.workload(ref)
		if asked := slices.Contains(w.asked, ref); asked || !o.result.Decision.Equal(o.before) || len(o.told) > 0 || len(o.down(lost)) > 0 {
			demand := kind.Demand(object)
			entry := entryOf(ref, demand.Replicas, demand.First, o)
			entry.Down, entry.asked = o.down(lost), asked
			report.Workloads = append(report.Workloads, entry)
			continue
		}
		report.Unchanged++
		if len(o.result.Decision) == 0 || o.result.Unplaced > 0 {
			report.Unplaced++
		}
	}
	return report, nil
}

// down is what stays in lost clusters.
func (o *outcome) down(lost []string) placement.Decision {
	out := placement.Decision{}
	for _, name := range lost {
		if share := o.result.Decision[name]; share.Replicas > 0 {
			out[name] = share
		}
	}
	return out
}

// stays reports whether anything is in lost clusters, and all of it is to stay there.
func stays(found outcomes, lost []string) bool {
	any := false
	for _, o := range found {
		for _, name := range lost {
			if had := o.before[name].Replicas; had > 0 {
				any = true
				if o.result.Decision[name].Replicas < had || slices.Contains(o.result.Tied, name) {
					return false
				}
			}
		}
	}
	return any
}

func entryOf(ref engine.Ref, replicas, first int32, o *outcome) Entry {
	return Entry{
		Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Replicas: replicas, first: first,
		Before: o.before, Steps: o.steps, Told: o.told, Result: o.result, Message: o.result.Message(), Remedies: o.remedies,
	}
}
