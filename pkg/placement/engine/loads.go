package engine

import (
	"maps"
	"strings"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// loads are the sums over the entries of a ledger by cluster. Entries name clusters by numbers, in lists that have no pointers: as maps by
// name, decisions about a thousand clusters would be most of what the garbage collector looks at.
type loads struct {
	numbers map[string]int32
	sums    []sum // by number
}

// sum is what all entries put on one cluster.
type sum struct {
	cluster        string
	placed, coming placement.Amounts
	// version counts changes, from 1 on.
	version uint64
	// What follows is of the change that is just being made: how many more replicas are placed, and are coming, and how many run.
	morePlaced, moreComing int64
	running                int32
}

// replicas are those of a workload in one cluster.
type replicas struct{ cluster, count int32 }

// number returns the number of a cluster.
func (l *loads) number(cluster string) int32 {
	if n, known := l.numbers[cluster]; known {
		return n
	}
	n := int32(len(l.sums))
	cluster = strings.Clone(cluster) // it may be part of a long text
	l.numbers[cluster] = n
	l.sums = append(l.sums, sum{cluster: cluster, placed: placement.Amounts{}, version: 1})
	return n
}

// load returns what entries put on a cluster. It goes on changing.
func (l *loads) load(number int32) placement.Load {
	s := &l.sums[number]
	return placement.Load{Assumed: s.coming, Placed: s.placed}
}

// replace takes one entry off the sums and adds another, either of which may be nil. The version of a sum that stays the same stays, too.
func (l *loads) replace(last, next *entry) {
	if last != nil && next != nil {
		if !maps.Equal(last.requests, next.requests) {
			l.replace(last, nil)
			last = nil
		} else if sameList(last.shares, next.shares) && sameList(last.running, next.running) {
			return
		}
	}
	l.count(last, -1)
	l.count(next, 1)
	l.settle(last)
	l.settle(next)
}

// count notes what an entry changes, by number of replicas.
func (l *loads) count(e *entry, sign int64) {
	if e == nil {
		return
	}
	for _, r := range e.running {
		l.sums[r.cluster].running = r.count
	}
	for _, share := range e.shares {
		s := &l.sums[share.cluster]
		s.morePlaced += sign * int64(share.count)
		s.moreComing += sign * int64(max(0, share.count-s.running))
	}
	for _, r := range e.running {
		l.sums[r.cluster].running = 0
	}
}

// settle makes the changes that were noted for the clusters of an entry.
func (l *loads) settle(e *entry) {
	if e == nil {
		return
	}
	requests := e.requests.Amounts()
	for _, share := range e.shares {
		s := &l.sums[share.cluster]
		if s.morePlaced == 0 && s.moreComing == 0 {
			continue
		}
		for _, r := range requests {
			s.placed = s.placed.Add(r.Name, s.morePlaced*r.Value)
			s.coming = s.coming.Add(r.Name, s.moreComing*r.Value)
		}
		s.morePlaced, s.moreComing = 0, 0
		s.version++
	}
}

// list is a decision as entries keep it: the very list of the last entry of the workload, if there is one and it says the same. A decision is
// often told several times, when it is made, stored and shown by a watch.
func (l *loads) list(decision placement.Decision, last *entry) []replicas {
	if last != nil && l.says(last.shares, decision) {
		return last.shares
	}
	out := make([]replicas, 0, len(decision))
	for cluster, share := range decision {
		out = append(out, replicas{l.number(cluster), share.Replicas})
	}
	return out
}

// says reports whether list made the shares of the same decision, as far as it keeps it.
func (l *loads) says(shares []replicas, decision placement.Decision) bool {
	if len(shares) != len(decision) {
		return false
	}
	for _, s := range shares {
		if share, has := decision[l.sums[s.cluster].cluster]; !has || share.Replicas != s.count {
			return false
		}
	}
	return true
}

// sameList reports whether both are one list, or empty.
func sameList(a, b []replicas) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// decision is what list made a list of, but for what matters to the workload itself alone.
func (l *loads) decision(shares []replicas) placement.Decision {
	out := make(placement.Decision, len(shares))
	for _, share := range shares {
		out[l.sums[share.cluster].cluster] = placement.Share{Replicas: share.count}
	}
	return out
}

// running is a list of what clusters report, without those that run nothing.
func (l *loads) running(counts map[string]int32) []replicas {
	var out []replicas
	for cluster, count := range counts {
		if count > 0 {
			out = append(out, replicas{l.number(cluster), count})
		}
	}
	return out
}

// counts is what running made a list of.
func (l *loads) counts(running []replicas) map[string]int32 {
	out := make(map[string]int32, len(running))
	for _, r := range running {
		out[l.sums[r.cluster].cluster] = r.count
	}
	return out
}

// names are those of the clusters.
func (l *loads) names(shares []replicas) []string {
	out := make([]string, 0, len(shares))
	for _, share := range shares {
		out = append(out, l.sums[share.cluster].cluster)
	}
	return out
}
