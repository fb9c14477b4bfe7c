package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Verdict is what a decision found out about one cluster. The result has one for every cluster, by name, and one for every name
// that the pin or the policy asks for and that has not joined.
type Verdict struct {
	Cluster string `json:"cluster"`
	// Feasible is true if the cluster may take replicas of the workload. Otherwise the reasons say why not; a share that it has
	// already may stay all the same.
	Feasible bool           `json:"feasible"`
	Reasons  []words.Reason `json:"reasons,omitempty"`
	// Score is how much is left there once the workload runs there, from 0 to 100, where 100 is as much as the emptiest cluster
	// has now.
	Score int64 `json:"score"`
	// Group is the policy's group that the cluster belongs to, and Preference the sum of the weights that the policy gives it.
	Group      string `json:"group,omitempty"`
	Preference int64  `json:"preference,omitempty"`
	// Fits is the number of replicas that the cluster has room for, beside those it runs.
	Fits int64 `json:"fits"`
	// Share is what the cluster gets; nil if the decision does not name it.
	Share *Share `json:"share,omitempty"`
}

// Result is a decision and what led to it.
type Result struct {
	// Decision is empty if no cluster can run the workload.
	Decision Decision `json:"decision,omitempty"`
	// Unplaced is the number of replicas that no cluster got.
	Unplaced int32     `json:"unplaced,omitempty"`
	Verdicts []Verdict `json:"verdicts"`
	// Policy is the policy that was followed, if there is one.
	Policy PolicyRef `json:"policy,omitzero"`
	// Strategy says in one word how replicas were handed out.
	Strategy Strategy `json:"strategy"`
	// Displaced is true if replicas run elsewhere than the policy wants them most, and may return when there is room.
	Displaced bool `json:"displaced,omitempty"`
	// Moved and Stuck are the replicas that their cluster could not schedule: those that go elsewhere, and those that have no other place.
	Moved int32 `json:"moved,omitempty"`
	Stuck int32 `json:"stuck,omitempty"`
	// Failures is what is to be remembered; see Annotation.
	Failures Failures `json:"-"`
	// Tied are the clusters, by name, that replicas should leave and do not because their volumes cannot follow.
	Tied []string `json:"tied,omitempty"`
	// Preemptions are what the workload takes from others of lower priority, by cluster.
	Preemptions []Preemption `json:"preemptions,omitempty"`
	// Notes say what is worth an event although the workload is placed. JSON has their texts.
	Notes []words.Note `json:"notes,omitempty"`
}

// Message is the result in one sentence without a full stop, the same for events, conditions and "manifold explain". It changes
// only when the decision or one of its reasons changes.
func (r Result) Message() string {
	if len(r.Decision) == 0 && len(r.Notes) > 0 {
		return strings.Join(words.Texts(r.Notes), "; ") // no cluster was looked at
	}
	clauses := []string{r.outcome()}
	if len(r.Decision) > 0 && r.Unplaced > 0 {
		clauses = append(clauses, r.shortfall())
	}
	clauses = append(clauses, words.Texts(r.Notes)...)
	return strings.Join(clauses, "; ")
}

func (r Result) outcome() string {
	switch {
	case len(r.Decision) == 0:
		return r.refusal("run it")
	case r.Unplaced > 0:
		return fmt.Sprintf("placed %d of %d replicas on %s",
			r.Decision.Total(), r.Decision.Total()+int64(r.Unplaced), r.Decision.describe())
	case r.Strategy == EachCluster:
		return "placed on " + r.Decision.names()
	default:
		return "placed on " + r.Decision.describe()
	}
}

func (r Result) shortfall() string {
	if joined, feasible := r.Count(); feasible > 0 || joined == 0 {
		return fmt.Sprintf("%d wait", r.Unplaced)
	}
	return r.refusal(fmt.Sprintf("take %d more", r.Unplaced))
}

func (r Result) refusal(what string) string {
	joined, feasible := r.Count()
	reasons := tally(r.Verdicts, "")
	if joined == 0 && reasons == "" {
		reasons = "no cluster has joined"
	}
	return fmt.Sprintf("%d/%d clusters can %s: %s", feasible, joined, what, reasons)
}

// Departure says which clusters have lost replicas since an earlier decision for a reason of their own, and which, as the end of a
// Message; "" if none has.
func (r Result) Departure(before Decision) string {
	var left []string
	for _, v := range r.Verdicts {
		if len(v.Reasons) > 0 && before[v.Cluster].Replicas > r.Decision[v.Cluster].Replicas {
			left = append(left, fmt.Sprintf("cluster %q, which %s", v.Cluster, v.Reasons[0]))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return "; moved off " + words.Enumerate(left)
}

// Obstacle says why no cluster but the one named can take the workload, in the words of a refusal; "" if one can.
func (r Result) Obstacle(cluster string) string {
	others := 0
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Cluster != cluster {
			if v.Feasible {
				return ""
			}
			others++
		}
	}
	if others == 0 {
		return "there is no other cluster"
	}
	return tally(r.Verdicts, cluster)
}

// tally counts all clusters but one by the first reason of each.
func tally(verdicts []Verdict, but string) string {
	parts := make([]words.Part, 0, len(verdicts))
	for i := range verdicts {
		if v := &verdicts[i]; v.Cluster != but {
			parts = append(parts, v.Part())
		}
	}
	return words.Tally(parts)
}

// Part is the cluster with its first reason.
func (v *Verdict) Part() words.Part {
	if len(v.Reasons) == 0 {
		return words.Part{Name: v.Cluster}
	}
	return words.Part{Name: v.Cluster, Reason: v.Reasons[0]}
}

// Absent reports whether the cluster has not joined.
func (v *Verdict) Absent() bool {
	return len(v.Reasons) > 0 && v.Reasons[0].Code == words.ReasonNotJoined
}

// KeptOff reports whether affinity keeps the workload off any cluster, or another one's antiAffinity does: that may change with where others run.
func (r Result) KeptOff() bool {
	for i := range r.Verdicts {
		for _, reason := range r.Verdicts[i].Reasons {
			switch reason.Code {
			case words.ReasonAntiAffinity, words.ReasonAffinity, words.ReasonAntiAffinityOfOthers:
				return true
			}
		}
	}
	return false
}

// Count counts the clusters that have joined, and the feasible ones among them.
func (r Result) Count() (joined, feasible int) {
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Absent() {
			continue
		}
		joined++
		if v.Feasible {
			feasible++
		}
	}
	return joined, feasible
}

// describe lists clusters with their shares: "east", "east (3) and west (2)".
func (d Decision) describe() string {
	if len(d) == 1 {
		return d.Clusters()[0]
	}
	return words.Enumerate(d.list(func(name string, replicas int32) string { return fmt.Sprintf("%s (%d)", name, replicas) }))
}

// names lists clusters alone: "east and west".
func (d Decision) names() string {
	return words.Enumerate(d.list(func(name string, _ int32) string { return name }))
}

func (d Decision) list(text func(name string, replicas int32) string) []string {
	var texts []string
	for i, name := range d.Clusters() {
		if i == words.NamedClusters {
			return append(texts, fmt.Sprintf("%d more clusters", len(d)-i))
		}
		texts = append(texts, text(name, d[name].Replicas))
	}
	return texts
}

// Short counts the replicas that have no room in a decision which started from the last one.
func (r Result) Short(last Decision) (count int64) {
	for i := range r.Verdicts {
		count += r.Verdicts[i].Waiting(last)
	}
	return count + int64(r.Unplaced)
}

// Waiting counts the replicas that a cluster got beyond its room.
func (v *Verdict) Waiting(last Decision) int64 {
	if v.Share == nil {
		return 0
	}
	return max(0, int64(v.Share.Replicas-last[v.Cluster].Replicas)-v.Fits)
}

// MakesWay reports whether clusters have lost replicas since an earlier decision to workloads of higher priority.
func (r Result) MakesWay(before Decision) bool {
	return slices.ContainsFunc(r.Verdicts, func(v Verdict) bool {
		return before[v.Cluster].Replicas > r.Decision[v.Cluster].Replicas &&
			slices.ContainsFunc(v.Reasons, func(reason words.Reason) bool { return reason.Code == words.ReasonDisplaced })
	})
}
