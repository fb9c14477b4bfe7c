package rules

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// massSilence is the part of all clusters beyond which their silence is taken for our own trouble: nothing is moved for it then. Half of
// them, as nearly as the node lifecycle controller of Kubernetes draws the line for the nodes of a zone.
const massSilence = 0.55

// Leaving says which clusters a workload is to leave on account of their taints, and when.
type Leaving struct {
	// Now are the clusters to leave.
	Now map[string]bool
	// Lost are those of them that are silent, so that nobody knows what still runs there, Forced those that are drained by force.
	Lost, Forced map[string]bool
	// Next is when another cluster will have to be left if nothing changes; zero if there is none.
	Next time.Time
}

// Leave reads the taints with effect NoExecute of the clusters that have a share of the workload, as the taint eviction controller of
// Kubernetes does those of nodes. A taint that the policy does not tolerate drives out at once, one that it tolerates for some seconds,
// when these have passed since the taint was added. A cluster that is silent has a taint as well, which is tolerated for the time of
// silence unless the policy says otherwise; it counts for nothing while and before most clusters are silent, for workloads that run on every
// cluster, which nobody can replace elsewhere, for what may run only once, and for opaque objects, of which nobody knows what a second one
// would do.
func Leave(s placement.Snapshot, r *placement.Request, silence time.Duration, now time.Time) Leaving {
	var out Leaving
	mass := mostSilent(s)
	for _, c := range s.Clusters() {
		if _, holds := r.Current[c.Name]; !holds {
			continue
		}
		for j := range c.Taints {
			taint := &c.Taints[j]
			silent := taint.Key == v1alpha1.TaintUnreachable
			if taint.Effect != corev1.TaintEffectNoExecute || silent && (mass || staysPut(&r.Workload)) {
				continue
			}
			stay, forever := Endures(r.Policy, taint, silence)
			if forever {
				continue
			}
			since := addedAt(taint)
			if silent {
				since = aloneSince(s, c.Name, since)
			}
			switch at := since.Add(stay); {
			case !at.After(now):
				out.leave(c.Name, taint)
			case out.Next.IsZero() || at.Before(out.Next):
				out.Next = at
			}
		}
	}
	return out
}

// staysPut reports whether nothing of a workload is placed elsewhere for the silence of its cluster.
func staysPut(w *placement.Workload) bool {
	return w.Division == placement.Everywhere || w.Opaque() || w.Once
}

func (l *Leaving) leave(cluster string, taint *corev1.Taint) {
	if l.Now == nil {
		l.Now, l.Lost, l.Forced = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	l.Now[cluster] = true
	switch {
	case taint.Key == v1alpha1.TaintUnreachable:
		l.Lost[cluster] = true
	case taint.Key == v1alpha1.TaintDrain && taint.Value == v1alpha1.DrainForce:
		l.Forced[cluster] = true
	}
}

// mostSilent reports whether so many clusters fell silent that the fault is likely ours. One cluster alone is no crowd.
func mostSilent(s placement.Snapshot) bool {
	silent := 0
	for _, c := range s.Clusters() {
		if c.Ready != metav1.ConditionTrue && c.Ready != metav1.ConditionFalse {
			silent++
		}
	}
	return isMost(silent, len(s.Clusters()))
}

func isMost(silent, all int) bool { return silent > 1 && float64(silent) > massSilence*float64(all) }

// aloneSince is since when the silence of a cluster counts: since most clusters are silent no longer, if they were. Those that return from a
// fault of ours do not all return in one moment, and the last of them have as much time as any.
func aloneSince(s placement.Snapshot, name string, since time.Time) time.Time {
	var returned []time.Time
	silent, all := 0, 0
	for _, c := range s.Clusters() {
		switch {
		case c.Joined.After(since) && c.Name != name:
			continue // it was not there to be silent
		case c.Ready != metav1.ConditionTrue && c.Ready != metav1.ConditionFalse:
			silent++
		case c.Ready == metav1.ConditionTrue && c.ReadySince.After(since):
			returned = append(returned, c.ReadySince)
		}
		all++
	}
	slices.SortFunc(returned, func(a, b time.Time) int { return b.Compare(a) })
	for _, at := range returned { // the last first
		if silent++; isMost(silent, all) {
			return at
		}
	}
	return since
}

// addedAt is when a taint was added. One that does not say has been there always.
func addedAt(taint *corev1.Taint) time.Time {
	if taint.TimeAdded == nil {
		return time.Time{}
	}
	return taint.TimeAdded.Time
}
