package projection

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// apportion divides an amount by weights, by largest remainder. The parts sum to the amount exactly; without any weight there are none.
// Ties go to the larger weight, then to the first name.
func apportion(amount int64, weights map[string]int64) map[string]int64 {
	type part struct {
		name              string
		weight, remainder uint64
	}
	var total uint64
	var parts []part
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if weight := weights[name]; weight > 0 {
			parts = append(parts, part{name: name, weight: uint64(weight)})
			total += uint64(weight)
		}
	}
	out := make(map[string]int64, len(parts))
	if len(parts) == 0 || amount <= 0 {
		return out
	}
	rest := amount
	for i := range parts {
		p := &parts[i]
		// The weight is at most the total, so the quotient fits, which is what Div64 asks for.
		high, low := bits.Mul64(uint64(amount), p.weight)
		var share uint64
		share, p.remainder = bits.Div64(high, low, total)
		out[p.name] = int64(share)
		rest -= int64(share)
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(-cmp.Compare(a.remainder, b.remainder), -cmp.Compare(a.weight, b.weight))
	})
	for _, p := range parts[:rest] {
		out[p.name]++
	}
	return out
}
