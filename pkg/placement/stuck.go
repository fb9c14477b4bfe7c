package placement

import (
	"fmt"
	"strings"
	"time"
)

// Pod is a pod of a workload that has not ended and is not about to.
type Pod struct {
	Cluster string
	// Number is that of a numbered replica, counted from the workload's first.
	Number int32
	// Since is when the scheduler of the cluster found that no node can run the pod; zero if one can, or if it has not looked yet. Says is
	// what it says of that.
	Since time.Time
	Says  string
	// Outdated tells that the pod cannot be scheduled either, but was made of an earlier template, and what replaces it may be.
	Outdated bool
}

// Stuck is what a cluster cannot run of a workload: what it cannot schedule, and what it refuses.
type Stuck struct {
	// Replicas are those of its share that have been unschedulable, or refused, for longer than is tolerated.
	Replicas int32
	// Idle tells that it has no other pod of the workload, so that nothing of that runs there.
	Idle bool
	// Says is what its scheduler says, or what it refuses pods with.
	Says string
	// Refused tells that pods are not even made.
	Refused bool
	// Tail is how many replicas at the end of a range could as well be elsewhere: from one on that is stuck, none of them has a node, nor a
	// volume that it is bound to. It is 0 where replicas have no numbers.
	Tail int32
	// Tied tells that it is volumes which keep numbered replicas where they are stuck.
	Tied bool
}

// podState is what is to be thought of a pod.
type podState int

const (
	podMissing  podState = iota // there is none
	podFine                     // it has a node, or may get one
	podStuck                    // it has waited for too long
	podOutdated                 // it waits, and is about to be replaced
	podStates
)

// judge says what is to be thought of a pod, and when that may be another thing by time alone.
func (p *Pod) judge(tolerated time.Duration, now time.Time) (v podState, next time.Time) {
	due := p.Since.Add(tolerated)
	switch {
	case p.Outdated:
		return podOutdated, time.Time{}
	case p.Since.IsZero(), lacksClaim(p.Says):
		return podFine, time.Time{}
	case due.After(now):
		return podFine, due
	}
	return podStuck, time.Time{}
}

// standing is how a cluster fares with its share.
type standing struct {
	counts   [podStates]int32
	says     string
	byNumber map[int32]podState // of numbered replicas
}

// Unschedulable tells what each cluster of a decision cannot run, and when another of its pods will have been unschedulable for too
// long; zero if none will. Pods beyond the share, such as the surge of a rolling update, stand for no replica: as long as the others are as
// many as the share, nothing is missing. Where there are fewer pods than the share has, the cluster is not as far yet, unless it refuses
// them; but of replicas with ordinals, and of what does not have its pods made anew, there may be no more.
func Unschedulable(
	w *Workload, current Decision, pods []Pod, tolerated time.Duration, now time.Time,
) (out map[string]Stuck, next time.Time) {
	if len(pods) == 0 && len(w.Refused) == 0 {
		return nil, time.Time{} // the ordinary case
	}
	standings := map[string]*standing{}
	of := func(cluster string) *standing {
		if standings[cluster] == nil {
			standings[cluster] = &standing{byNumber: map[int32]podState{}}
		}
		return standings[cluster]
	}
	for i := range pods {
		pod := &pods[i]
		if _, decided := current[pod.Cluster]; !decided {
			continue
		}
		v, due := pod.judge(tolerated, now)
		next = Earliest(next, due)
		of(pod.Cluster).add(pod, v, w.Numbered)
	}
	refused := map[string]bool{}
	for cluster, refusal := range w.Refused {
		if _, decided := current[cluster]; !decided || refusal.Pods <= 0 {
			continue
		}
		if due := refusal.Since.Add(tolerated); due.After(now) {
			next = Earliest(next, due)
			continue
		}
		refused[cluster] = true
		of(cluster)
	}
	for cluster, s := range standings {
		if found := s.judge(w, cluster, current[cluster], refused[cluster]); found.Replicas > 0 {
			if out == nil {
				out = map[string]Stuck{}
			}
			out[cluster] = found
		}
	}
	return out, next
}

func (s *standing) add(pod *Pod, v podState, numbered bool) {
	s.counts[v]++
	if numbered {
		s.byNumber[pod.Number] = v
	}
	if v == podStuck && (s.counts[podStuck] == 1 || pod.Says < s.says) {
		s.says = pod.Says // of several, always the same one
	}
}

// judge makes one finding of the pods of a cluster, and of those that it refuses to have made.
func (s *standing) judge(w *Workload, cluster string, share Share, refused bool) Stuck {
	others, known := s.counts[podFine], s.counts[podFine]+s.counts[podStuck]+s.counts[podOutdated]
	waits := s.counts[podStuck]
	found := Stuck{Idle: others == 0, Says: firstSentence(s.says)}
	switch refusal := w.Refused[cluster]; {
	case refused:
		waits += min(refusal.Pods, max(0, share.Replicas-known))
		if s.counts[podStuck] == 0 {
			found.Says, found.Refused = refusal.Says, true
		}
	case known < share.Replicas && !w.Numbered && !w.Fixed:
		return Stuck{}
	}
	found.Replicas = min(waits, share.Replicas-others)
	if w.Numbered && found.Replicas > 0 {
		found.Tail, found.Tied = s.tail(w, cluster, share, refused)
	}
	return found
}

// tail is Stuck.Tail: how many replicas at the end of a range may go. Of those that are missing, the first may only have been deleted this
// moment, unless the cluster refuses it.
func (s *standing) tail(w *Workload, cluster string, share Share, refused bool) (tail int32, tied bool) {
	end := share.Start + share.Replicas
	lowest := end
	for number := end - 1; number >= share.Start; number-- {
		v := s.byNumber[number]
		if v == podFine || v == podOutdated {
			break
		}
		if !w.Recreates && w.Kept[number] == cluster {
			tied = true
			break
		}
		if v == podStuck || refused {
			lowest = number
		}
	}
	return end - lowest, tied
}

// lacksClaim tells whether a scheduler says that there is no such claim as a pod names. It is for somebody to make it, and then it is where
// the pod is.
func lacksClaim(says string) bool {
	return strings.Contains(says, `persistentvolumeclaim "`) && strings.Contains(says, "not found")
}

// firstSentence is what a scheduler says of the nodes, without what it says of preemption, which changes with every attempt.
func firstSentence(message string) string {
	sentence, _, _ := strings.Cut(message, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// reason is why a cluster takes no more replicas.
func (s Stuck) reason() Reason {
	if s.Refused {
		return Reason{Code: ReasonRefused, Detail: s.Says}
	}
	return Reason{Code: ReasonUnschedulable, Detail: s.Says}
}

// remark says how many replicas stay where they cannot run.
func (s Stuck) remark(left int64, cluster, says string) string {
	switch {
	case s.Refused && left == 1:
		return fmt.Sprintf("1 replica is refused by %s (%s)", cluster, says)
	case s.Refused:
		return fmt.Sprintf("%d replicas are refused by %s (%s)", left, cluster, says)
	case left == 1:
		return fmt.Sprintf("1 replica is unschedulable on %s (%s)", cluster, says)
	}
	return fmt.Sprintf("%d replicas are unschedulable on %s (%s)", left, cluster, says)
}
