package portion

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// dividing is a random problem for Divide, small enough for the dumb versions below.
type dividing struct {
	replicas          int32
	weights, capacity map[string]int64
	last              placement.Decision
}

func randomDivision(r *rand.Rand) dividing {
	d := dividing{replicas: r.Int32N(14), weights: map[string]int64{}, capacity: map[string]int64{}, last: placement.Decision{}}
	for i := range 1 + r.IntN(5) {
		name := fmt.Sprintf("c%d", i)
		d.weights[name] = r.Int64N(6)
		if r.IntN(2) == 0 {
			d.capacity[name] = r.Int64N(7)
		}
		if r.IntN(3) > 0 {
			d.last[name] = placement.Share{Replicas: r.Int32N(6)}
		}
	}
	return d
}

// exactParts is the dumb version of bounded parts, in rational numbers: a level rises until all replicas are handed out, and a
// cluster stops taking at its capacity.
func exactParts(d dividing) map[string]*big.Rat {
	parts, rest := map[string]*big.Rat{}, new(big.Rat).SetInt64(int64(d.replicas))
	for name, weight := range d.weights {
		if weight > 0 {
			parts[name] = new(big.Rat)
		}
	}
	room := func(name string) *big.Rat { // nil is Unbounded
		if bound, ok := d.capacity[name]; ok {
			return new(big.Rat).Sub(new(big.Rat).SetInt64(max(0, bound)), parts[name])
		}
		return nil
	}
	for rest.Sign() > 0 {
		total, step := int64(0), new(big.Rat)
		for name := range parts {
			if left := room(name); left == nil || left.Sign() > 0 {
				total += d.weights[name]
			}
		}
		if total == 0 {
			return parts
		}
		step.Quo(rest, new(big.Rat).SetInt64(total))
		for name := range parts {
			if left := room(name); left != nil && left.Sign() > 0 {
				if perWeight := left.Quo(left, new(big.Rat).SetInt64(d.weights[name])); perWeight.Cmp(step) < 0 {
					step = perWeight
				}
			}
		}
		for name := range parts {
			if left := room(name); left == nil || left.Sign() > 0 {
				more := new(big.Rat).Mul(step, new(big.Rat).SetInt64(d.weights[name]))
				parts[name].Add(parts[name], more)
				rest.Sub(rest, more)
			}
		}
	}
	return parts
}

// moved counts the replicas that arrive somewhere.
func moved(from, to placement.Decision) (count int64) {
	for name, share := range to {
		count += max(0, int64(share.Replicas)-int64(from[name].Replicas))
	}
	return count
}

// fewestMoves tries every dividing that gives each cluster its exact part within one replica.
func fewestMoves(d dividing, parts map[string]*big.Rat, sum int64) int64 {
	names, fewest := slices.Sorted(maps.Keys(parts)), int64(-1)
	var try func(i int, sum int64, so placement.Decision)
	try = func(i int, left int64, so placement.Decision) {
		if i == len(names) {
			if count := moved(d.last, so); left == 0 && (fewest < 0 || count < fewest) {
				fewest = count
			}
			return
		}
		low := new(big.Int).Quo(parts[names[i]].Num(), parts[names[i]].Denom()).Int64()
		high := low
		if !parts[names[i]].IsInt() {
			high++
		}
		for share := low; share <= high; share++ {
			so[names[i]] = placement.Share{Replicas: int32(share)}
			try(i+1, left-share, so)
		}
	}
	try(0, sum, placement.Decision{})
	return fewest
}

func TestDivideAgainstDumbVersions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		d := randomDivision(r)
		got, unplaced := Divide(d.replicas, d.weights, d.capacity, d.last)
		if problem := judgeDivision(d, got, unplaced); problem != "" {
			t.Fatalf("%s: %+v gives %s, %d unplaced", problem, d, got, unplaced)
		}
		again, _ := Divide(d.replicas, d.weights, d.capacity, got)
		if !again.Equal(got) {
			t.Fatalf("dividing again moves something: %+v gives %s, then %s", d, got, again)
		}
	}
}

func judgeDivision(d dividing, got placement.Decision, unplaced int32) string {
	parts := exactParts(d)
	sum := new(big.Rat)
	for _, part := range parts {
		sum.Add(sum, part)
	}
	if got.Total()+int64(unplaced) != int64(d.replicas) {
		return "the sum is wrong"
	}
	if new(big.Rat).SetInt64(got.Total()).Cmp(sum) != 0 {
		return "there is room, yet replicas are unplaced"
	}
	for name, share := range got {
		part := parts[name]
		if part == nil || share.Replicas <= 0 {
			return "a share without weight or without replicas"
		}
		off := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(share.Replicas)), part)
		if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
			return "a share is off by a replica or more"
		}
		if bound, ok := d.capacity[name]; ok && int64(share.Replicas) > bound {
			return "a share exceeds its bound"
		}
	}
	if moved(d.last, got) != fewestMoves(d, parts, got.Total()) {
		return "fewer replicas could move"
	}
	return ""
}

// Over even weights a scale from any even division to any number of replicas only adds or only removes.
func TestEvenScalingNeverShuffles(t *testing.T) {
	weights := map[string]int64{"a": 1, "b": 1, "c": 1, "d": 1}
	r := rand.New(rand.NewPCG(3, 4))
	last := placement.Decision{}
	for range 5000 {
		replicas := r.Int32N(50)
		next, _ := Divide(replicas, weights, nil, last)
		want := max(0, int64(replicas)-last.Total())
		if got := moved(last, next); got != want {
			t.Fatalf("from %s to %s: %d moved, want %d", last, next, got, want)
		}
		last = next
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(int32(5), int64(1), int64(2), int64(0), int64(9), int64(9), int32(2), int32(3))
	f.Add(int32(-1), int64(-1), int64(1<<62), int64(1<<40), int64(-9), int64(1<<62), int32(-2), int32(1<<30))
	f.Fuzz(func(t *testing.T, replicas int32, w1, w2, w3, c1, c2 int64, l1, l3 int32) {
		weights := map[string]int64{"a": w1, "b": w2, "c": w3}
		capacity := map[string]int64{"a": c1, "b": c2}
		last := placement.Decision{"a": {Replicas: l1}, "c": {Replicas: l3}}
		got, unplaced := Divide(replicas, weights, capacity, last)
		if got.Total()+int64(unplaced) != int64(max(0, replicas)) || unplaced < 0 {
			t.Fatalf("%s and %d unplaced of %d", got, unplaced, replicas)
		}
		for name, share := range got {
			bound, bounded := capacity[name]
			if share.Replicas <= 0 || weights[name] <= 0 || bounded && int64(share.Replicas) > bound {
				t.Fatalf("share %d on %s", share.Replicas, name)
			}
			if unplaced > 0 && !bounded {
				t.Fatalf("%d unplaced, though %s is Unbounded", unplaced, name)
			}
		}
		if again, _ := Divide(replicas, weights, capacity, got); !again.Equal(got) {
			t.Fatalf("%s, then %s", got, again)
		}
	})
}
