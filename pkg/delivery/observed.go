package delivery

import "time"

// Observed is what is seen of the world while a release runs.
type Observed struct {
	// Clusters are those that the logical cluster has, by name.
	Clusters map[string]Cluster
	Orders   Orders
	// Measured holds what was measured for a stage, by the stage's ID.
	Measured map[string][]Measurement
	// Scripts holds how far the Jobs are that run scripts of stages or measure for them, by the name of their run.
	Scripts map[string]Outcome
	// Calls holds how far the stages are that plugins run, by the name of their run, as scripts have one.
	Calls map[string]Outcome
}

// Cluster is what is known of a cluster. All of it but the labels is what the cluster says itself.
type Cluster struct {
	Labels map[string]string
	// Heard is when it has answered last.
	Heard time.Time
	// Edit is the edit of the set, as Status.Edits counts them, that the report is about.
	Edit int64
	// Unapplied says how much of the last edit is still to be applied, "" if that is not known or not worth telling.
	Unapplied string
	// Wanted is how many pods of each workload the primary is to have here, be it by an autoscaler, or would have if it ran here.
	Wanted map[string]int32
	// Behind are those of these workloads whose pods the Service in front leads to. It is known where requests are shared out.
	Behind []string
	// Unroutable says why its traffic cannot be shared out, "" if it can.
	Unroutable string
	// Unrouted says what keeps it from being shared out as the set says yet, "" if nothing is known to.
	Unrouted string
	Variants map[string]Report
}

// Report is what a cluster says of a variant.
type Report struct {
	// Fingerprint is that of the part that it has applied.
	Fingerprint string
	// Current says that the status of every workload is about what was applied: its observedGeneration is the generation.
	Current bool
	// Ready says that all that is to be ready is, ReadySince since when.
	Ready      bool
	ReadySince time.Time
	// Progress grows while the workloads get on: the number of pods that are updated, and of those that are ready.
	Progress int64
	// Failure says why the cluster has refused what it was to apply. Waiting is what keeps it from being ready.
	Failure, Waiting string
	// Pods is how many of its pods are ready, and Endpoints how many of these traffic gets to in the cluster, by its own slices of endpoints.
	Pods, Endpoints int32
	// Weight is its share of the traffic that is in force. Of an application whose traffic nobody shares out it is what the set says.
	Weight int32
}

// Orders are what people have asked for while the release runs.
type Orders struct {
	Approvals []Assent
	Cancel    *Cancel
	// Skip holds the stages that are left out, by ID, with who has said so.
	Skip map[string]string
	// SkipAt is when they have said so. A plugin that runs such a stage is told first.
	SkipAt map[string]time.Time
	// SkipTargets holds, by the stage's ID, those of its targets that are left out, with who has said so.
	SkipTargets map[string]map[string]string
	// Retry holds, by the stage's ID, the attempt that is to follow, counted from 1.
	Retry map[string]int32
	// RetryTargets holds, by the stage's ID, the targets that are tried again; none means all.
	RetryTargets map[string][]string
	// Rollback is who wants the release rolled back, empty if nobody does.
	Rollback string
}

// Cancel asks to end a release.
type Cancel struct {
	By string
	// Rollback says that what it has done is to be undone.
	Rollback bool
}

// Assent is an approval that somebody gave.
type Assent struct {
	Stage string
	// Attempt is the attempt of the stage that it is about, counted from 1; 0 if that is not known.
	Attempt int32
	User    string
	Groups  []string
	Comment string
	Time    time.Time
}

// Measurement is one look at a metric.
type Measurement struct {
	Metric string
	Time   time.Time
	Values []float64
	// Control are the values that they are compared with.
	Control []float64
	// First says that there is nothing earlier to compare with.
	First bool
	// Error says why nothing was measured.
	Error string
}

// Outcome is how far the Job of a script or a measurement is, or a stage that a plugin runs.
type Outcome struct {
	Phase   Phase // Running, Succeeded or Failed; of a plugin's stage also Cancelled, Skipped or Exited
	Message string
	// Since is when the Job was made, as far as it is known.
	Since time.Time
}
