package routing

import (
	"fmt"
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// mostCopies is how many pods copies may have for each of the primary's where requests are shared out by numbers of pods. The primary keeps what it has,
// so the last percents would take ever more: 99% are 99 pods for one.
const mostCopies = 4

// ByPods refuses shares of a cluster's variants that numbers of pods behind one Service cannot make: it leads to one variant alone, or to all of them.
func ByPods(shares map[string]int32) error {
	var with, without []string
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if shares[name] > 0 {
			with = append(with, name)
		} else {
			without = append(without, name)
		}
	}
	primary, runs := shares[delivery.Primary]
	switch {
	case len(with) < 2:
		return nil
	case len(without) > 0:
		return fmt.Errorf("traffic.%s: by numbers of pods either one variant gets everything, or each gets a part: the Service leads to all of their pods", without[0])
	case !runs:
		return fmt.Errorf("traffic.%s: by numbers of pods the primary must run where others share requests", with[0])
	case Whole-primary > mostCopies*primary:
		return fmt.Errorf("traffic.%s: by numbers of pods the primary gets 0%%, or %d%% and more: it keeps its pods, and others would have more than %d for each of them",
			delivery.Primary, Whole/(mostCopies+1), mostCopies)
	}
	return nil
}

// Pods returns how many pods of each workload each copy is to have in a cluster, such that its part of all pods is as near to its share as whole pods
// allow: by variant and workload. Primary is how many the primary has of each workload behind the Service; it keeps them. A copy with any share has at
// least one pod, and one that gets everything as many as the primary. What is not named has no size to keep: nobody asks for its pods, or nothing is
// known of the primary's.
func Pods(shares, primary map[string]int32) map[string]map[string]int32 {
	pods := int64(0)
	for _, n := range primary {
		pods += int64(max(0, n))
	}
	copies, share := map[string]int32{}, int32(0)
	for name, part := range shares {
		if name != delivery.Primary && part > 0 {
			copies[name], share = part, share+part
		}
	}
	if pods == 0 || len(copies) == 0 || ByPods(shares) != nil {
		return nil
	}
	sizes := map[string]int64{}
	if share >= Whole {
		for name := range copies {
			sizes[name] = pods
		}
	} else {
		sizes = SplitAtLeastOne(max(int64(len(copies)), beside(pods, int64(share))), copies)
	}
	out := map[string]map[string]int32{}
	for name, size := range sizes {
		out[name] = map[string]int32{}
		for workload, n := range Split(size, primary) {
			out[name][workload] = int32(n)
		}
	}
	return out
}

// beside returns how many pods beside so many others are nearest to a share of them all, in percent.
func beside(pods, share int64) int64 {
	fewer := pods * share / (Whole - share)
	// off is how far n is from the share, in parts of Whole times all pods.
	off := func(n int64) int64 { return max(Whole*n-share*(pods+n), share*(pods+n)-Whole*n) }
	if off(fewer)*(pods+fewer+1) <= off(fewer+1)*(pods+fewer) {
		return fewer
	}
	return fewer + 1
}
