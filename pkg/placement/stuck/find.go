// Package stuck finds out what clusters cannot run of their shares, or are to make room with, and has it look for other clusters.
package stuck

import (
	"time"

	"github.com/manifold-dev/manifold/internal/heard"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// podState is what is to be thought of a pod.
type podState int

const (
	podMissing  podState = iota // there is none
	podFine                     // it has a node, or may get one
	podStuck                    // it has waited for too long
	podOutdated                 // it waits, and is about to be replaced
	podStates
)

// judgePod says what is to be thought of a pod, and when that may be another thing by time alone.
func judgePod(p *placement.Pod, tolerated time.Duration, now time.Time) (v podState, next time.Time) {
	due := p.Since.Add(tolerated)
	switch {
	case p.Outdated:
		return podOutdated, time.Time{}
	case p.Since.IsZero(), p.Cause == placement.CauseNoClaim:
		return podFine, time.Time{}
	case due.After(now):
		return podFine, due
	}
	return podStuck, time.Time{}
}

// standing is how a cluster fares with its share.
type standing struct {
	counts    [podStates]int32
	says      string
	cause     placement.Cause
	byOrdinal map[int32]podState // of replicas with ordinals
}

// Find says what each cluster of a decision cannot run, and when another of its pods will have been unschedulable for too
// long; zero if none will. Pods beyond the share, such as the surge of a rolling update, stand for no replica: as long as the others are as
// many as the share, nothing is missing. Where there are fewer pods than the share has, the cluster is not as far yet, unless it refuses
// them; but of replicas with ordinals, and of what does not have its pods made anew, there may be no more.
func Find(
	w *placement.Workload, current placement.Decision, pods []placement.Pod, tolerated time.Duration, now time.Time,
) (out map[string]placement.Stuck, next time.Time) {
	if len(pods) == 0 && len(w.Refused) == 0 {
		return nil, time.Time{} // the ordinary case
	}
	standings := map[string]*standing{}
	of := func(cluster string) *standing {
		if standings[cluster] == nil {
			standings[cluster] = &standing{byOrdinal: map[int32]podState{}}
		}
		return standings[cluster]
	}
	for i := range pods {
		pod := &pods[i]
		if _, decided := current[pod.Cluster]; !decided {
			continue
		}
		v, due := judgePod(pod, tolerated, now)
		next = placement.Earliest(next, due)
		of(pod.Cluster).add(pod, v, w.Ordinals)
	}
	refused := map[string]bool{}
	for cluster, refusal := range w.Refused {
		if _, decided := current[cluster]; !decided || refusal.Pods <= 0 {
			continue
		}
		if due := refusal.Since.Add(tolerated); due.After(now) {
			next = placement.Earliest(next, due)
			continue
		}
		refused[cluster] = true
		of(cluster)
	}
	for cluster, s := range standings {
		if found := s.judge(w, cluster, current[cluster], refused[cluster]); found.Replicas > 0 {
			if out == nil {
				out = map[string]placement.Stuck{}
			}
			out[cluster] = found
		}
	}
	return out, next
}

func (s *standing) add(pod *placement.Pod, v podState, numbered bool) {
	s.counts[v]++
	if numbered {
		s.byOrdinal[pod.Ordinal] = v
	}
	if v == podStuck && (s.counts[podStuck] == 1 || pod.Says < s.says) {
		s.says, s.cause = pod.Says, pod.Cause // of several, always the same one
	}
}

// judge makes one finding of the pods of a cluster, and of those that it refuses to have made.
func (s *standing) judge(w *placement.Workload, cluster string, share placement.Share, refused bool) placement.Stuck {
	others, known := s.counts[podFine], s.counts[podFine]+s.counts[podStuck]+s.counts[podOutdated]
	waits := s.counts[podStuck]
	found := placement.Stuck{Idle: others == 0, Says: heard.FirstSentence(s.says), Cause: s.cause}
	switch refusal := w.Refused[cluster]; {
	case refused:
		waits += min(refusal.Pods, max(0, share.Replicas-known))
		if s.counts[podStuck] == 0 {
			found.Says, found.Cause, found.Refused = refusal.Says, placement.CauseOther, true
		}
	case known < share.Replicas && !w.Ordinals && !w.Fixed:
		return placement.Stuck{}
	}
	found.Replicas = min(waits, share.Replicas-others)
	if w.Ordinals && found.Replicas > 0 {
		found.Tail, found.Tied = s.tail(w, cluster, share, refused)
	}
	return found
}

// tail is Stuck.Tail: how many replicas at the end of a range may go. Of those that are missing, the first may only have been deleted this
// moment, unless the cluster refuses it.
func (s *standing) tail(w *placement.Workload, cluster string, share placement.Share, refused bool) (tail int32, tied bool) {
	end := share.Start + share.Replicas
	lowest := end
	for number := end - 1; number >= share.Start; number-- {
		v := s.byOrdinal[number]
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
