package delivery

import (
	"maps"
	"slices"
	"time"
)

// Phase is how far a release, a stage or a target is.
type Phase string

// The phases. A release is RollingBack between its failure and its end; no stage or target ever is.
const (
	NotStarted  Phase = "NotStarted"
	Running     Phase = "Running"
	RollingBack Phase = "RollingBack"
	Succeeded   Phase = "Succeeded"
	Failed      Phase = "Failed"
	Cancelled   Phase = "Cancelled"
	Skipped     Phase = "Skipped"
	// Exited is a stage that is done, and has ended the pipeline with success.
	Exited Phase = "Exited"
)

// Ended reports whether nothing follows.
func (p Phase) Ended() bool { return p.Passed() || p == Failed || p == Cancelled }

// Passed reports whether what comes next may begin.
func (p Phase) Passed() bool { return p == Succeeded || p == Skipped || p == Exited }

// Status is all that is known of the run of a release. It is what Next continues from, so a restart loses nothing.
type Status struct {
	Phase   Phase     `json:"phase,omitempty"`
	Message string    `json:"message,omitempty"`
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	// Targets are where the release goes. They are recorded when it begins.
	Targets []Place `json:"targets,omitempty"`
	// Before is the set that a rollback puts back, nil if there was none.
	Before *Set `json:"before,omitempty"`
	// Set is what the application is to run now.
	Set Set `json:"set,omitempty"`
	// Edits counts the edits of the set for each cluster. A report about an earlier one proves nothing.
	Edits  map[string]int64 `json:"edits,omitempty"`
	Stages []StageStatus    `json:"stages,omitempty"`
	// Ending is the phase that the release has once it is rolled back, and RolledBack how that has ended.
	Ending     Phase `json:"ending,omitempty"`
	RolledBack Phase `json:"rolledBack,omitempty"`
}

// Place is a cluster that a release goes to, and the target that names it.
type Place struct {
	Target  string `json:"target"`
	Cluster string `json:"cluster"`
}

// StageStatus is how far a stage is.
type StageStatus struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Phase   Phase     `json:"phase,omitempty"`
	Message string    `json:"message,omitempty"`
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	// Attempt counts the retries.
	Attempt int32          `json:"attempt,omitempty"`
	Targets []TargetStatus `json:"targets,omitempty"`
	// Metrics holds what was measured so far, by the metric's name.
	Metrics map[string]MetricStatus `json:"metrics,omitempty"`
	// Approvers are the people whose approval counts now.
	Approvers []string `json:"approvers,omitempty"`
}

// TargetStatus is how far a stage is in a cluster.
type TargetStatus struct {
	Place
	Phase    Phase  `json:"phase,omitempty"`
	Message  string `json:"message,omitempty"`
	Revision string `json:"revision,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
	// Retired says that the cluster is no target any more, so that the application leaves it.
	Retired bool `json:"retired,omitempty"`
	// Silent says that the cluster does not answer.
	Silent bool      `json:"silent,omitempty"`
	Wave   int       `json:"wave,omitempty"`
	Start  time.Time `json:"start,omitzero"`
	End    time.Time `json:"end,omitzero"`
	// Replicas are those that a copy gets here, by workload.
	Replicas map[string]int32 `json:"replicas,omitempty"`
	// Pods is how many of them are ready.
	Pods int32 `json:"pods,omitempty"`
	// Shares are those of the traffic that the variants are to have here.
	Shares map[string]int32 `json:"shares,omitempty"`
	// Progress is the most that was seen of it, and Progressed when that was.
	Progress   int64     `json:"progress,omitempty"`
	Progressed time.Time `json:"progressed,omitzero"`
	// ReadySeen is since when it has been seen to be ready.
	ReadySeen time.Time `json:"readySeen,omitzero"`
	// Drained is since when no traffic goes to what is to be removed.
	Drained time.Time `json:"drained,omitzero"`
}

// MetricStatus is what was measured of a metric.
type MetricStatus struct {
	Checks   int32     `json:"checks,omitempty"`
	Failures int32     `json:"failures,omitempty"`
	Last     time.Time `json:"last,omitzero"`
	Message  string    `json:"message,omitempty"`
}

// Clone returns a copy that shares nothing that is ever changed with the status.
func (s Status) Clone() Status {
	s.Targets = slices.Clone(s.Targets)
	s.Set = s.Set.Clone()
	s.Edits = maps.Clone(s.Edits)
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		s.Stages[i].Targets = slices.Clone(s.Stages[i].Targets)
		s.Stages[i].Metrics = maps.Clone(s.Stages[i].Metrics)
	}
	return s
}
