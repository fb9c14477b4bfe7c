package move

import (
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Acquire returns which ordinals a cluster may run now on its way to want, given what it has of them and what others may run at this moment.
// It gets none that another may run: break before make, since an ordinal that ran twice would be two owners of one identity. Of those that
// nobody else may run it gets the ones next to what it has. If it has none of what it wants, it gets the first ones, in order as in a single
// cluster, or, where another cluster hands them over, the last ones. Held reports whether it has to wait for more.
func Acquire(want, have placement.Range, others []placement.Range, handed bool) (now placement.Range, held bool) {
	if want == have {
		return want, false
	}
	now = want.Intersect(have)
	for _, free := range want.Without(others) {
		if !now.Intersect(free).Empty() || now.Empty() && (handed || free.Start == want.Start) {
			now = now.Hull(free)
			break
		}
	}
	return now, now != want && !(now.Empty() && want.Empty())
}

// Heir is a cluster that is to get ordinals that another one has.
type Heir struct {
	// Decided are the ordinals that it is to have in the end, Has those that are assigned to it.
	Decided, Has placement.Range
	// Served says that it serves all those that it can have by now; see Serves.
	Served bool
}

// Serves reports whether so many available replicas are all that a cluster can have by now, given what is assigned to the others.
func Serves(decided, has placement.Range, available int32, others []placement.Range) bool {
	if !has.Empty() && has.Intersect(decided).Empty() {
		return true // it has to give up what it has first
	}
	due, _ := Acquire(decided, has, others, true)
	return available >= due.End-due.Start
}

// takes reports whether the heir can go on with the ordinals at an end of those that another cluster has, and whether that is the lower end.
func (h Heir) takes(have, moving placement.Range) (next, lower bool) {
	has := h.Has.Intersect(h.Decided)
	switch {
	case h.Has.Empty():
		return moving.End == h.Decided.End, false
	case has.Empty():
		return true, false
	case has.Start < have.Start:
		return has.End == have.Start, true
	default:
		return has.Start == have.End, false
	}
}

// Release returns which ordinals a cluster keeps for now that is to have only want of those that it has. It hands over one after another,
// the next when its heir serves what it was given so far, so that in a move no more than one is missing. It begins with the highest, or at
// the other end if the heir has what comes before. What no heir is to have goes at once, as when a workload is scaled down.
func Release(want, have placement.Range, heirs []Heir) placement.Range {
	keep, ready, ascending := want, true, false
	for _, heir := range heirs {
		var moving placement.Range
		for _, part := range heir.Decided.Intersect(have).Without([]placement.Range{heir.Has}) {
			moving = moving.Hull(part)
		}
		if !moving.Empty() {
			next, lower := heir.takes(have, moving)
			keep, ready, ascending = keep.Hull(moving), ready && next && heir.Served, ascending || lower
		}
	}
	if keep == want || !ready {
		return keep
	}
	first, last := want.Empty() || keep.Start < want.Start, want.Empty() || keep.End > want.End
	if first && (ascending || !last) {
		keep.Start++
	} else {
		keep.End--
	}
	if keep.Empty() {
		return want
	}
	return keep
}
