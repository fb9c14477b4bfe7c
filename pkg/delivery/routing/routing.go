// Package routing says what shares of the traffic may be set now, so that traffic moves only to what is there.
package routing

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/portion"
)

// Whole is all of a cluster's traffic.
const Whole = 100

// Validate says what is wrong with wanted shares, nil if nothing is. The primary may be left out: it gets the rest.
func Validate(shares map[string]int32) error {
	total := int64(0)
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if share := shares[name]; share < 0 || share > Whole {
			return fmt.Errorf("traffic.%s: %d is not a percentage: it must be from 0 to 100", name, share)
		}
		total += int64(shares[name])
	}
	if _, named := shares[delivery.Primary]; named && total != Whole || total > Whole {
		return fmt.Errorf("traffic: the shares add up to %d, and have to be 100", total)
	}
	return nil
}

// Complete returns shares with the rest for the primary, where it is not named.
func Complete(shares map[string]int32) map[string]int32 {
	out := maps.Clone(shares)
	if _, named := out[delivery.Primary]; named {
		return out
	}
	rest := int32(Whole)
	for _, share := range out {
		rest -= share
	}
	if out == nil {
		out = map[string]int32{}
	}
	out[delivery.Primary] = rest
	return out
}

// Spread returns the shares of each cluster that make the wanted ones over all clusters together, by cluster and variant. A variant that runs in
// some of the clusters gets so much more of the traffic there; loads says how much of all traffic each cluster has, by the pods that serve it. All that a cluster has no
// other variant for goes to its primary. The shares of a cluster add up to 100.
func Spread(set delivery.Set, wanted map[string]int32, loads map[string]int64) map[string]map[string]int32 {
	out := map[string]map[string]int32{}
	for cluster := range loads {
		out[cluster] = map[string]int32{}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if name == delivery.Primary {
			continue
		}
		all, with := int64(0), int64(0)
		for cluster, load := range loads {
			load = max(1, load) // a cluster without pods yet has some traffic all the same
			all += load
			if runs(set, name, cluster) {
				with += load
			}
		}
		if with == 0 {
			continue
		}
		share := min(Whole, math.Round(float64(wanted[name])*float64(all)/float64(with)))
		for cluster := range loads {
			if runs(set, name, cluster) {
				out[cluster][name] = int32(share)
			}
		}
	}
	for cluster, shares := range out {
		out[cluster] = fit(set, cluster, shares)
	}
	return out
}

// fit has the shares of a cluster add up to 100. What the primary cannot have, because the cluster does not run it, the others divide.
func fit(set delivery.Set, cluster string, shares map[string]int32) map[string]int32 {
	total := int32(0)
	for _, share := range shares {
		total += share
	}
	if _, primary := set.Part(delivery.Primary, cluster); primary && total <= Whole {
		shares[delivery.Primary] = Whole - total
		return shares
	}
	weights := map[string]int64{}
	for name, share := range shares {
		weights[name] = int64(share)
	}
	return divide(Whole, weights)
}

// runs reports whether a cluster is to run any pod of a variant. Requests go to pods of the cluster that they come to, so that is where a variant can have
// a share: this, and the endpoints that Now asks for, are all that has to know where Services lead to pods of other clusters as well.
func runs(set delivery.Set, variant, cluster string) bool {
	part, has := set.Part(variant, cluster)
	if !has || variant == delivery.Primary {
		return has
	}
	for _, replicas := range part.Replicas {
		if replicas > 0 {
			return true
		}
	}
	return len(part.Replicas) == 0
}

func divide(total int32, weights map[string]int64) map[string]int32 {
	out := map[string]int32{}
	shares, _ := portion.Divide(total, weights, nil, placement.Decision{})
	for name, share := range shares {
		out[name] = share.Replicas
	}
	return out
}

// Now returns the shares that may be set in a cluster, on the way from the present ones to those that are wanted, and why they are others yet. What
// has no endpoint that is ready gets no more than it has: those that were to give it up keep that. The shares add up to what the wanted ones do.
func Now(cluster string, present, wanted map[string]int32, seen delivery.Cluster) (shares map[string]int32, reason string) {
	shares = maps.Clone(wanted)
	held, giving, missing := int32(0), map[string]int64{}, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if wanted[name] > present[name] && seen.Variants[name].Endpoints < 1 {
			shares[name] = present[name]
			held += wanted[name] - present[name]
			missing = append(missing, name)
		}
	}
	if held == 0 {
		return shares, ""
	}
	lost := int32(0)
	for name, share := range present {
		if share > wanted[name] {
			giving[name] = int64(share - wanted[name])
			lost += share - wanted[name]
		}
	}
	if lost == 0 {
		return wanted, "" // nothing is routed yet, so that nothing is lost
	}
	// Those that give up more than is held give up the rest of it.
	for name, share := range divide(min(held, lost), giving) {
		shares[name] += share
	}
	return shares, fmt.Sprintf("no endpoint of the %s is ready in cluster %q: traffic stays where it is", strings.Join(missing, " and the "), cluster)
}

// MayGo says when a part whose traffic has gone may go too: zero if that is not known yet. What never had traffic may go at once.
func MayGo(part delivery.Part, gone time.Time, drain time.Duration) (at time.Time, known bool) {
	switch {
	case !part.Routed:
		return time.Time{}, true
	case part.Traffic > 0 || gone.IsZero():
		return time.Time{}, false
	}
	return gone.Add(drain), true
}

// Split divides a whole among variants by their shares: exactly, and by the largest remainder.
func Split(whole int64, shares map[string]int32) map[string]int64 { return split(whole, shares, 0) }

// SplitAtLeastOne is Split that leaves no variant with a share empty, unless there are more of them than there is to divide.
func SplitAtLeastOne(whole int64, shares map[string]int32) map[string]int64 {
	return split(whole, shares, 1)
}

func split(whole int64, shares map[string]int32, least int64) map[string]int64 {
	names := slices.SortedFunc(maps.Keys(shares), func(a, b string) int { return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b)) })
	parts := make([]portion.Part, len(names))
	for i, name := range names {
		parts[i] = portion.Part{Weight: int64(shares[name]), Capacity: placement.Unbounded, Least: least, Required: least > 0 && shares[name] > 0}
	}
	portion.Among(whole, parts)
	out := make(map[string]int64, len(names))
	for i, name := range names {
		out[name] = parts[i].Share
	}
	return out
}
