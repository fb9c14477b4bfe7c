package placement

import (
	"cmp"
	"slices"
)

// Range is a range of ordinals: those from Start on, up to End, without it.
type Range struct{ Start, End int32 }

// Ordinals returns the ordinals of a share of a workload whose first ordinal is first.
func (s Share) Ordinals(first int32) Range {
	return Range{Start: first + s.Start, End: first + s.Start + s.Replicas}
}

// Empty reports whether there is no ordinal in the range.
func (r Range) Empty() bool { return r.End <= r.Start }

// Contains reports whether an ordinal is in the range.
func (r Range) Contains(ordinal int32) bool { return r.Start <= ordinal && ordinal < r.End }

// Intersect returns the ordinals that are in both ranges.
func (r Range) Intersect(other Range) Range {
	out := Range{max(r.Start, other.Start), min(r.End, other.End)}
	if out.Empty() {
		return Range{}
	}
	return out
}

// Hull returns the smallest range with the ordinals of both.
func (r Range) Hull(other Range) Range {
	switch {
	case r.Empty():
		return other
	case other.Empty():
		return r
	}
	return Range{min(r.Start, other.Start), max(r.End, other.End)}
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
