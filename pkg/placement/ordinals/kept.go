package ordinals

import (
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// KeepToVolumes has a workload with ordinals that is placed for the first time, or again after it was deleted, go whole to the cluster that has
// the volume claims of its replicas: data does not follow. Of several, that is the one with most of them. A user who chooses other clusters
// is obeyed, and so is one who moves what runs.
func KeepToVolumes(f *rules.Field) {
	w := &f.Request.Workload
	if !w.Ordinals || len(w.Kept) == 0 || f.Strategy != placement.Whole || len(f.Holders()) > 0 {
		return
	}
	count := map[string]int{}
	for number, cluster := range w.Kept {
		if int64(number) < f.Replicas {
			count[cluster]++
		}
	}
	var home *rules.Candidate
	for _, k := range f.Candidates { // by name, so that the first of equals is always the same
		if k.Chosen() && count[k.Name] > 0 && (home == nil || count[k.Name] > count[home.Name]) {
			home = k
		}
	}
	if home == nil {
		return
	}
	for _, k := range f.Candidates {
		if k != home && k.Chosen() {
			k.Reasons = append(k.Reasons, words.Reason{Code: words.ReasonNoVolume})
			k.Frozen = true
		}
	}
}

// returned gives pieces that are nobody's to the clusters that have the volume claims of these replicas, as far as each still has one range.
// What such a cluster may not take now waits for it.
func (c *layout) returned(last []piece) []piece {
	kept := c.Request.Workload.Kept
	if len(kept) == 0 {
		return last
	}
	ends := map[*rules.Candidate]int64{}
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
			home := c.Find(kept[int32(number)])
			if home != nil && !home.Chosen() {
				home = nil
			}
			if end, has := ends[home]; home != nil && has && end != number {
				home = nil
			}
			out = returning(out, home, number)
			if home != nil {
				home.Ranged, ends[home] = true, number+1
			}
		}
	}
	return out
}

// returning adds a replica that goes back to its home, nil for none, to the pieces.
func returning(pieces []piece, home *rules.Candidate, number int64) []piece {
	next := piece{start: number, end: number + 1}
	switch {
	case home != nil && home.Takes():
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
func (c *layout) await(p piece) {
	c.unplaced += p.end - p.start
	p.awaits.Awaited += p.end - p.start
}

// awaitAll says of a workload of which every replica waits for its home why no other cluster runs it.
func (c *layout) awaitAll() {
	awaited := int64(0)
	for _, k := range c.Candidates {
		awaited += k.Awaited
	}
	if awaited == 0 || awaited < c.Replicas {
		return
	}
	for _, k := range c.Candidates {
		if k.Takes() {
			k.Reasons = append(k.Reasons, words.Reason{Code: words.ReasonNoVolume})
			k.Frozen = true
		}
	}
}
