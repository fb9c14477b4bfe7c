package placement

import (
	"fmt"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// keepToVolumes has a numbered workload that is placed for the first time, or again after it was deleted, go whole to the cluster that has
// the volume claims of its replicas: data does not follow. Of several, that is the one with most of them. A user who chooses other clusters
// is obeyed, and so is one who moves what runs.
func (c *cycle) keepToVolumes() {
	w := &c.request.Workload
	if !w.Numbered || len(w.Kept) == 0 || c.strategy.name != Whole || len(c.holders()) > 0 {
		return
	}
	count := map[string]int{}
	for number, cluster := range w.Kept {
		if int64(number) < c.replicas {
			count[cluster]++
		}
	}
	var home *candidate
	for i := range c.candidates { // by name, so that the first of equals is always the same
		if k := &c.candidates[i]; k.chosen() && count[k.Name] > 0 && (home == nil || count[k.Name] > count[home.Name]) {
			home = k
		}
	}
	if home == nil {
		return
	}
	for i := range c.candidates {
		if k := &c.candidates[i]; k != home && k.chosen() {
			k.reasons = append(k.reasons, Reason{Code: ReasonNoVolume})
			freezes(k)
		}
	}
}

// chosen tells whether the workload may be in the cluster at all.
func (k *candidate) chosen() bool { return !k.leaves && !k.evicted }

// returned gives pieces that are nobody's to the clusters that have the volume claims of these replicas, as far as each may take them and
// still has one range.
func (c *cycle) returned(last []piece) []piece {
	kept := c.request.Workload.Kept
	if len(kept) == 0 {
		return last
	}
	ends := map[*candidate]int64{}
	for _, p := range last {
		if p.owner != nil {
			ends[p.owner] = p.end
		}
	}
	var out []piece
	for _, p := range last {
		if p.owner != nil {
			out = append(out, p)
			continue
		}
		for number := p.start; number < p.end; number++ {
			home := c.taker(kept[int32(number)])
			if end, has := ends[home]; home != nil && has && end != number {
				home = nil
			}
			if n := len(out); n > 0 && out[n-1].owner == home && out[n-1].end == number && out[n-1].returns == (home != nil) {
				out[n-1].end++
			} else {
				out = append(out, piece{owner: home, start: number, end: number + 1, returns: home != nil})
			}
			if home != nil {
				home.ranged, ends[home] = true, number+1
			}
		}
	}
	return out
}

// taker returns the cluster of that name if it may take replicas now.
func (c *cycle) taker(name string) *candidate {
	if k := c.find(name); k != nil && k.takes() {
		return k
	}
	return nil
}

// tie keeps replicas in a cluster that they should leave if they have volumes there: data does not follow. The cluster gets no more of them.
func (c *cycle) tie(k *candidate) {
	if !k.runs || !k.leaves && !k.evicted || !c.request.Workload.Tied[k.Name] {
		return
	}
	k.leaves, k.evicted, k.tied = false, false, true
	freezes(k)
}

// TiedAdvice says what to do about a workload that stays where its volumes are.
const TiedAdvice = "to have it begin with new ones elsewhere, set its annotation " + v1alpha1.AnnotationVolumes + "=" + v1alpha1.VolumesRecreate

// remarkTied says why replicas stay in clusters that they should leave.
func (c *cycle) remarkTied(r Result) string {
	if len(r.Tied) == 0 {
		return ""
	}
	return fmt.Sprintf("it stays on %s, as its volumes cannot follow; %s", enumerate(r.Tied), TiedAdvice)
}

// tied are the clusters, by name, that replicas do not leave because their volumes cannot follow.
func (c *cycle) tied() (names []string) {
	w := &c.request.Workload
	if w.Fixed && !c.request.restarts() {
		return nil
	}
	for i := range c.candidates {
		k := &c.candidates[i]
		waits := (k.leaves || k.evicted) && k.stuck == 0
		if k.placed && (k.tied || waits && w.VolumesIn[k.Name]) {
			names = append(names, k.Name)
		}
	}
	return names
}
