package oam

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Diff is how what is wanted differs from what was ordered: the variants that come, change and go.
type Diff struct{ Add, Mod, Del []string }

// Compare returns the difference. Variants that are kept as they are, since nobody knows what they are made of, do not count.
func Compare(ordered, wanted map[string]Size, kept map[string]bool) Diff {
	var out Diff
	for _, variant := range slices.Sorted(maps.Keys(wanted)) {
		switch before, had := ordered[variant]; {
		case !had:
			out.Add = append(out.Add, variant)
		case !before.Equal(wanted[variant]):
			out.Mod = append(out.Mod, variant)
		}
	}
	for _, variant := range slices.Sorted(maps.Keys(ordered)) {
		if _, stays := wanted[variant]; !stays && !kept[variant] {
			out.Del = append(out.Del, variant)
		}
	}
	return out
}

// Situation is what is known of an ApplicationDeployment.
type Situation struct {
	// Wanted is what the spec asks for, and Ordered what was ordered last, by variant.
	Wanted, Ordered map[string]Size
	// Kept are the variants of the spec of which nobody knows what they are made of: they stay as they are.
	Kept map[string]bool
	// Lacking says of a variant what keeps it from being ready as it is wanted, "" if nothing does. Unrouted is what keeps clusters from sharing out
	// requests as is wanted.
	Lacking  func(variant string) string
	Unrouted string
	// Since is since when what goes is drained, zero if it is not.
	Since time.Time
	Now   time.Time
	Drain time.Duration
}

// Step is what is done now.
type Step struct {
	Diff Diff
	// Sizes are what is ordered of the variants that are wanted, and Remove those that are taken away.
	Sizes  map[string]Size
	Remove []string
	// Since is the next Situation's, and Again when there is more to do by then; 0 if nothing.
	Since time.Time
	Again time.Duration
	// Waits says what is waited for, "" if nothing.
	Waits string
}

// Next says what is done now. What is added or grows comes first; once that is ready and requests go there, what goes is drained, and then what is to be
// smaller, or is no longer wanted, goes.
func Next(s Situation) Step {
	step := Step{Diff: Compare(s.Ordered, s.Wanted, s.Kept), Sizes: map[string]Size{}}
	shrinks, leaves := false, len(step.Diff.Del) > 0
	for variant, wanted := range s.Wanted {
		step.Sizes[variant] = wanted.Grown(s.Ordered[variant])
		shrinks = shrinks || !step.Sizes[variant].Equal(wanted)
		leaves = leaves || step.Sizes[variant].leaves(wanted)
	}
	if step.Waits = s.waits(step.Sizes); step.Waits != "" || !shrinks && !leaves {
		return step
	}
	if leaves {
		if step.Since = s.Since; step.Since.IsZero() {
			step.Since = s.Now
		}
		if left := step.Since.Add(s.Drain).Sub(s.Now); left > 0 {
			step.Again, step.Waits = left, fmt.Sprintf("waiting for %s until what gets no more requests is drained", s.Drain)
			return step
		}
	}
	step.Sizes, step.Remove = maps.Clone(s.Wanted), step.Diff.Del
	return step
}

// waits says what has to come before anything goes.
func (s Situation) waits(sizes map[string]Size) string {
	var out []string
	for _, variant := range slices.Sorted(maps.Keys(s.Wanted)) {
		if ordered, has := s.Ordered[variant]; !has || !ordered.Equal(sizes[variant]) {
			out = append(out, variant+" is about to be applied")
		} else if lacks := s.Lacking(variant); lacks != "" {
			out = append(out, variant+": "+lacks)
		}
	}
	for _, variant := range slices.Sorted(maps.Keys(s.Kept)) {
		out = append(out, variant+" is not known")
	}
	if len(out) == 0 && s.Unrouted != "" {
		return s.Unrouted
	}
	return strings.Join(out, "; ")
}
