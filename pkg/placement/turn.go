package placement

import (
	"cmp"
	"slices"
)

// Range is a range of numbers: those from Start on, up to End, without it.
type Range struct{ Start, End int32 }

// Empty tells whether there is no number in the range.
func (r Range) Empty() bool { return r.End <= r.Start }

// Intersect returns the numbers that are in both ranges.
func (r Range) Intersect(other Range) Range {
	out := Range{max(r.Start, other.Start), min(r.End, other.End)}
	if out.Empty() {
		return Range{}
	}
	return out
}

// Hull returns the smallest range with the numbers of both.
func (r Range) Hull(other Range) Range {
	switch {
	case r.Empty():
		return other
	case other.Empty():
		return r
	}
	return Range{min(r.Start, other.Start), max(r.End, other.End)}
}

// Turn returns which numbers a cluster may run now on its way to want, given what it has of them and what others may run at this moment.
// It gets none that another may run: break before make, since a number that ran twice would be two owners of one identity. Of those that
// nobody else may run it gets the ones next to what it has. If it has none of what it wants, it gets the first ones, in order as in a single
// cluster, or, where another cluster hands them over, the last ones. Held tells that it has to wait for more.
func Turn(want, have Range, others []Range, handed bool) (now Range, held bool) {
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

// Without returns the parts of a range that are in none of the others, the highest first.
func (r Range) Without(others []Range) []Range {
	taken := slices.DeleteFunc(slices.Clone(others), Range.Empty)
	slices.SortFunc(taken, func(a, b Range) int { return cmp.Compare(b.End, a.End) })
	var free []Range
	for _, other := range taken {
		if part := r.Intersect(Range{other.End, r.End}); !part.Empty() {
			free = append(free, part)
		}
		r.End = min(r.End, other.Start)
	}
	if !r.Empty() {
		free = append(free, r)
	}
	return free
}

// Heir is a cluster that is to get numbers which another one has.
type Heir struct {
	// Decided are the numbers that it is to have in the end, Has those that it has been told to run.
	Decided, Has Range
	// Served tells that it serves all those that it can have by now; see Serves.
	Served bool
}

// Serves tells whether so many available replicas are all that a cluster can have by now, given what the others have been told to run.
func Serves(decided, has Range, available int32, others []Range) bool {
	if !has.Empty() && has.Intersect(decided).Empty() {
		return true // it has to give up what it has first
	}
	due, _ := Turn(decided, has, others, true)
	return available >= due.End-due.Start
}

// takes tells whether the heir can go on with the numbers at an end of those that another cluster has, and whether that is the lower end.
func (h Heir) takes(have, moving Range) (next, lower bool) {
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

// Release returns which numbers a cluster keeps for now that is to have only want of those that it has. It hands over one after another,
// the next when its heir serves what it was given so far, so that in a move no more than one is missing. It begins with the highest, or at
// the other end if the heir has what comes before. What no heir is to have goes at once, as when a workload is scaled down.
func Release(want, have Range, heirs []Heir) Range {
	keep, ready, ascending := want, true, false
	for _, heir := range heirs {
		var moving Range
		for _, part := range heir.Decided.Intersect(have).Without([]Range{heir.Has}) {
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
