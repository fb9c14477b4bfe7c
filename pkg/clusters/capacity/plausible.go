package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A cluster says itself how large it is, and what is free there draws workloads, with the Secrets that they need. So what nobody has is not
// counted, and a cluster that has joined is not suddenly another one: beyond a size that does not matter it doubles once in Window, unless an
// administrator has set limits for it, which bound it anyway.

// Window is how long what counts of a cluster takes to double.
const Window = 10 * time.Minute

// mostNames is how many resources of a node count.
const mostNames = 64

// largest is more than any machine has, of all others than these resources mostOf.
var largest = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("4096"),
	corev1.ResourceMemory:           resource.MustParse("128Ti"),
	corev1.ResourcePods:             resource.MustParse("10000"),
	corev1.ResourceEphemeralStorage: resource.MustParse("16Pi"),
}

// floors are amounts up to which it does not matter how fast a cluster grows.
var floors = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("1000"),
	corev1.ResourceMemory:           resource.MustParse("8Ti"),
	corev1.ResourcePods:             resource.MustParse("20000"),
	corev1.ResourceEphemeralStorage: resource.MustParse("1Pi"),
}

// The same of resources that are not listed: devices, and bytes such as those of huge pages.
var (
	mostOf  = resource.MustParse("1Ei")
	floorOf = resource.MustParse("1000")
	bytesOf = resource.MustParse("8Ti")
)

// mostTotal is the largest sum of anything that counts, mostCPUs of CPUs, which are counted in thousandths: more could not be added exactly.
var mostTotal, mostCPUs = resource.MustParse("1Ei"), resource.MustParse("1T")

// Implausible says why a node is not counted, "" if it is: it has more of something than any machine, or less than nothing.
func Implausible(node *corev1.Node) string {
	for _, list := range []corev1.ResourceList{node.Status.Allocatable, node.Status.Capacity} {
		if len(list) > mostNames {
			return fmt.Sprintf("it has %d resources", len(list))
		}
		for _, name := range slices.Sorted(maps.Keys(list)) {
			amount := list[name]
			most, known := largest[name]
			if !known {
				most = mostOf
			}
			switch {
			case len(validation.IsQualifiedName(string(name))) > 0:
				return "it has a resource without a name"
			case amount.Sign() < 0:
				return fmt.Sprintf("it has a negative amount of %s", name)
			case amount.Cmp(most) > 0:
				return fmt.Sprintf("no machine has more than %s of %s", most.String(), name)
			}
		}
	}
	return ""
}

// Growth is how large a cluster was at a time from which on at most twice as much counts.
type Growth struct {
	From corev1.ResourceList
	At   time.Time
}

// Belief is what counts of what a cluster says of its size.
type Belief struct {
	Counted corev1.ResourceList
	Growth  Growth
	// Held says what does not count yet, "" if all counts, and Until when it is looked at again.
	Held  string
	Until time.Time
}

// Believe returns what counts of what a cluster reports, of which last has counted so far; nil if nothing has, as when it joins: then all of
// it counts, which whoever joins it sees. Limits are the administrator's: what they name is bounded by them and by nothing else.
func Believe(reported, last corev1.ResourceList, growth Growth, limits corev1.ResourceList, now time.Time) Belief {
	if growth.At.IsZero() {
		growth = Growth{From: last, At: now}
		if last == nil {
			growth.From = reported
		}
	}
	if !within(reported, growth.From, limits) && !now.Before(growth.At.Add(Window)) {
		growth = Growth{From: atLeast(growth.From, last), At: now}
	}
	out := Belief{Counted: make(corev1.ResourceList, len(reported)), Growth: growth}
	var held []string
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		amount := reported[name]
		limit, limited := limits[name]
		most := ceiling(name, growth.From)
		if limited && limit.Cmp(most) > 0 {
			most = limit
		}
		if amount.Cmp(most) > 0 {
			if !limited {
				held = append(held, fmt.Sprintf("%s of %s %s", most.String(), amount.String(), name))
			}
			amount = most
		}
		out.Counted[name] = amount.DeepCopy()
	}
	if len(held) > 0 {
		out.Held, out.Until = strings.Join(held, ", "), growth.At.Add(Window)
	}
	return out
}

// within reports whether all that is reported counts.
func within(reported, from, limits corev1.ResourceList) bool {
	for name, amount := range reported {
		if _, limited := limits[name]; !limited && amount.Cmp(ceiling(name, from)) > 0 {
			return false
		}
	}
	return true
}

// ceiling is what counts at most of a resource of a cluster that had from.
func ceiling(name corev1.ResourceName, from corev1.ResourceList) resource.Quantity {
	floor, known := floors[name]
	switch {
	case known:
	case strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		floor = bytesOf
	default:
		floor = floorOf
	}
	twice := from[name]
	twice = twice.DeepCopy()
	twice.Add(from[name])
	if twice.Cmp(floor) > 0 {
		return twice
	}
	return floor.DeepCopy()
}

// atLeast returns the larger of both of each resource.
func atLeast(a, b corev1.ResourceList) corev1.ResourceList {
	out := a.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	for name, amount := range b {
		if had, ok := out[name]; !ok || had.Cmp(amount) < 0 {
			out[name] = amount.DeepCopy()
		}
	}
	return out
}

// clip leaves of a sum what can be added and compared, and of its resources as many as are looked at.
func clip(sum corev1.ResourceList) {
	for i, name := range slices.SortedFunc(maps.Keys(sum), func(a, b corev1.ResourceName) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) }) {
		amount, most := sum[name], mostTotal
		if name == corev1.ResourceCPU {
			most = mostCPUs
		}
		switch {
		case i >= mostNames:
			delete(sum, name)
		case amount.Cmp(most) > 0:
			sum[name] = most.DeepCopy()
		}
	}
}

// rank has the resources first that every cluster has.
func rank(name corev1.ResourceName) int {
	if _, known := floors[name]; known {
		return 0
	}
	return 1
}
