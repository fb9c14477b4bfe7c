package summary

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Breakdown is the status by cluster as the annotation manifold.dev/status holds it.
type Breakdown map[string]ClusterStatus

// ClusterStatus is what the breakdown tells of one cluster. Zeros are left out of the annotation.
type ClusterStatus struct {
	// Replicas, Ready, Available and Updated are the counters of a workload in the cluster.
	Replicas  int32 `json:"replicas,omitempty"`
	Ready     int32 `json:"ready,omitempty"`
	Available int32 `json:"available,omitempty"`
	Updated   int32 `json:"updated,omitempty"`
	// Unproxied is how many of the ready replicas of an application that shares out requests these do not get to yet: the slices of endpoints of the cluster
	// do not name them, or have not for long enough that each of its nodes goes by them.
	Unproxied int32 `json:"unproxied,omitempty"`
	// Start is the ordinal of the first replica of a StatefulSet in the cluster.
	Start int32 `json:"start,omitempty"`
	// Succeeded and Failed are the pods of a Job that have ended; Replicas are those that have not. Ended is how the Job itself has there:
	// the type of its condition.
	Succeeded int32  `json:"succeeded,omitempty"`
	Failed    int32  `json:"failed,omitempty"`
	Ended     string `json:"ended,omitempty"`
	// Volume is the one that the cluster has bound a claim to, unless the claim asks for it by name.
	Volume string `json:"volume,omitempty"`
	// Generation is the generation upstream that the cluster carries out.
	Generation int64 `json:"generation,omitempty"`
	// Revision is the revision of an application that the object in the cluster is made of, and Target the target of it whose manifests count,
	// once its controllers have seen it so; "" for the object as it stands.
	Revision string `json:"revision,omitempty"`
	Target   string `json:"target,omitempty"`
	// Lacks says what the cluster is to have of that revision beside the workload, such as a ConfigMap or a Service, and does not have yet. It is told by the
	// first workload of the revision that is placed in the cluster, for all of them.
	Lacks string `json:"lacks,omitempty"`
	// Routes is the mark of what the cluster holds otherwise than the object says, see projection.Routes; "" for nothing.
	Routes string `json:"routes,omitempty"`
	// Stale tells that the cluster is silent and this is the last that was heard of it.
	Stale bool `json:"stale,omitempty"`
	// Problem says why the cluster cannot hold the object.
	Problem string `json:"problem,omitempty"`
	// Waits says what the cluster waits for before it has what was decided.
	Waits string `json:"waits,omitempty"`
	// Doubt says what the cluster reports that cannot be, and does not count.
	Doubt string `json:"doubt,omitempty"`
	// Withdrawal is how far the addresses of the cluster are on their way out of the status.
	Withdrawal
	// Refused tells of pods that the cluster does not let be made. Placement reads it, see placement.ParseRefusals.
	Refused *placement.Refusal `json:"refused,omitempty"`
}

// BreakdownOf gives the breakdown of what the clusters report.
func (k Kind) BreakdownOf(reports map[string]Report) Breakdown {
	out := make(Breakdown, len(reports))
	for cluster, report := range reports {
		var entry ClusterStatus
		if report.Live != nil {
			entry = k.count(report.Live)
		}
		entry.Generation, entry.Stale, entry.Problem = report.Generation, report.Stale, report.Problem
		entry.Revision, entry.Target, entry.Lacks, entry.Routes = report.Revision, report.Target, report.Lacks, report.Routes
		entry.Unproxied = min(report.Unproxied, entry.Ready)
		entry.Waits, entry.Refused, entry.Doubt = report.Waits, report.Refused, strings.Join(report.Doubts, "; ")
		out[cluster] = entry
	}
	return out
}

// ExceptionsOf is what an object without a breakdown says of the clusters that hold it otherwise than it says, or whose addresses its status does
// not have: there are none almost always.
func ExceptionsOf(reports map[string]Report) Breakdown {
	out := Breakdown{}
	for cluster, report := range reports {
		if report.Routes != "" || report.Withdrawal != (Withdrawal{}) {
			out[cluster] = ClusterStatus{Routes: report.Routes, Stale: report.Stale, Withdrawal: report.Withdrawal}
		}
	}
	return out
}

// String returns the breakdown as compact JSON, the same for equal breakdowns, and "" for an empty one: no annotation then.
func (b Breakdown) String() string {
	if len(b) == 0 {
		return ""
	}
	data, err := json.Marshal(map[string]ClusterStatus(b))
	if err != nil {
		return "" // Strings, numbers and booleans always encode.
	}
	return string(data)
}

// ParseBreakdown reads what String wrote. An empty string is an empty breakdown; fields of later versions are ignored.
func ParseBreakdown(annotation string) (Breakdown, error) {
	if annotation == "" {
		return Breakdown{}, nil
	}
	var out Breakdown
	if err := json.Unmarshal([]byte(annotation), &out); err != nil {
		return nil, fmt.Errorf("parse the status by cluster %.100q: %w", annotation, err)
	}
	return out, nil
}

// Leaving returns the annotation with a breakdown to which the clusters are added that a decision drops. Who stores the decision stores it
// along: a cluster that may still hold a share is always known from the object itself, so that no other can say that it holds one. Such an
// entry tells what the cluster was to run, since it may run that, counted from first; its syncer tells later what it has, if anything.
func Leaving(annotation string, before, after placement.Decision, first int32) string {
	var out Breakdown
	for cluster, share := range before {
		if _, stays := after[cluster]; stays {
			continue
		}
		if out == nil {
			// It is ours; if it is damaged, what it said is lost.
			if out, _ = ParseBreakdown(annotation); out == nil {
				out = Breakdown{}
			}
		}
		if _, known := out[cluster]; known {
			continue
		}
		entry := ClusterStatus{Replicas: share.Replicas, Revision: share.Revision, Target: share.Target}
		if share.Start+first > 0 {
			entry.Start = share.Start + first
		}
		out[cluster] = entry
	}
	if out == nil {
		return annotation
	}
	return out.String()
}
