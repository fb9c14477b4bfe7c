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

// returned gives pieces that are nobody's to the clusters that have the volume claims of these replicas, as far as each still has one range.
// What such a cluster may not take now waits for it.
func (c *cycle) returned(last []piece) []piece {
	kept := c.request.Workload.Kept
	if len(kept) == 0 {
		return last
	}
	ends := map[*candidate]int64{}
	for _, p := range last {
		if p.owner != nil && !p.stuck {
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
			home := c.find(kept[int32(number)])
			if home != nil && !home.chosen() {
				home = nil
			}
			if end, has := ends[home]; home != nil && has && end != number {
				home = nil
			}
			out = returning(out, home, number)
			if home != nil {
				home.ranged, ends[home] = true, number+1
			}
		}
	}
	return out
}

// returning adds a replica that goes back to its home, nil for none, to the pieces.
func returning(pieces []piece, home *candidate, number int64) []piece {
	next := piece{start: number, end: number + 1}
	switch {
	case home != nil && home.takes():
		next.owner, next.returns = home, true
	case home != nil:
		next.awaits = home
	}
	if n := len(pieces); n > 0 {
		if last := &pieces[n-1]; last.end == number && last.owner == next.owner && last.returns == next.returns && last.awaits == next.awaits {
			last.end++
			return pieces
		}
	}
	return append(pieces, next)
}

// await leaves replicas unplaced until their home may take them.
func (c *cycle) await(p piece) {
	c.unplaced += p.end - p.start
	p.awaits.awaited += p.end - p.start
}

// awaitAll says of a workload of which every replica waits for its home why no other cluster runs it.
func (c *cycle) awaitAll() {
	awaited := int64(0)
	for i := range c.candidates {
		awaited += c.candidates[i].awaited
	}
	if awaited == 0 || awaited < c.replicas {
		return
	}
	for i := range c.candidates {
		if k := &c.candidates[i]; k.takes() {
			k.reasons = append(k.reasons, Reason{Code: ReasonNoVolume})
			freezes(k)
		}
	}
}

// remarkAwaited says which clusters replicas wait for, as their volumes are there.
func (c *cycle) remarkAwaited() string {
	var texts []string
	for i := range c.candidates {
		if k := &c.candidates[i]; k.awaited > 0 && len(k.reasons) > 0 {
			texts = append(texts, fmt.Sprintf("%d for %s, which %s", k.awaited, k.Name, k.reasons[0]))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "these wait where their volumes are: " + enumerate(texts)
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
