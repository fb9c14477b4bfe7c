package placement

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
// As long as they may run any that it is to get, it gets none beside those that it has: break before make, since a number that ran twice
// would be two owners of one identity. What it is to give up, it gives up at once, so two clusters never wait for each other.
func Turn(want, have Range, others []Range) (now Range, held bool) {
	if want == have {
		return want, false
	}
	for _, other := range others {
		if !other.Intersect(want).Empty() {
			return want.Intersect(have), true
		}
	}
	return want, false
}
