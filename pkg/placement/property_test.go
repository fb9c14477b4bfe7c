package placement

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// division is a random problem for Divide, small enough for the dumb versions below.
type division struct {
	replicas          int32
	weights, capacity map[string]int64
	last              Decision
}

func randomDivision(r *rand.Rand) division {
	d := division{replicas: r.Int32N(14), weights: map[string]int64{}, capacity: map[string]int64{}, last: Decision{}}
	for i := range 1 + r.IntN(5) {
		name := fmt.Sprintf("c%d", i)
		d.weights[name] = r.Int64N(6)
		if r.IntN(2) == 0 {
			d.capacity[name] = r.Int64N(7)
		}
		if r.IntN(3) > 0 {
			d.last[name] = Share{Replicas: r.Int32N(6)}
		}
	}
	return d
}

// exactParts is the dumb version of bounded parts, in rational numbers: a level rises until all replicas are handed out, and a
// cluster stops taking at its capacity.
func exactParts(d division) map[string]*big.Rat {
	parts, rest := map[string]*big.Rat{}, new(big.Rat).SetInt64(int64(d.replicas))
	for name, weight := range d.weights {
		if weight > 0 {
			parts[name] = new(big.Rat)
		}
	}
	room := func(name string) *big.Rat { // nil is unbounded
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
func moved(from, to Decision) (count int64) {
	for name, share := range to {
		count += max(0, int64(share.Replicas)-int64(from[name].Replicas))
	}
	return count
}

// fewestMoves tries every division that gives each cluster its exact part within one replica.
func fewestMoves(d division, parts map[string]*big.Rat, sum int64) int64 {
	names, fewest := slices.Sorted(maps.Keys(parts)), int64(-1)
	var try func(i int, sum int64, so Decision)
	try = func(i int, left int64, so Decision) {
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
			so[names[i]] = Share{Replicas: int32(share)}
			try(i+1, left-share, so)
		}
	}
	try(0, sum, Decision{})
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

func judgeDivision(d division, got Decision, unplaced int32) string {
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
	last := Decision{}
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

// randomPlacement makes any mix of clusters and requests.
func randomPlacement(r *rand.Rand) ([]Cluster, Request) {
	var clusters []Cluster
	req := deployment(r.Int32N(12))
	req.Current = Decision{}
	for i := range 1 + r.IntN(5) {
		name := fmt.Sprintf("c%d", i)
		b := cluster(name, r.Int64N(12)-2)
		b.Unschedulable = r.IntN(5) == 0
		b.Ready = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue,
			metav1.ConditionFalse, metav1.ConditionUnknown}[r.IntN(5)]
		if r.IntN(8) == 0 {
			b.noNodes()
		}
		clusters = append(clusters, b.Cluster)
		if r.IntN(2) == 0 {
			req.Current[name] = Share{Replicas: r.Int32N(6)}
		}
	}
	req.Workload.Division = []Division{Indivisible, Divisible, Divisible, Divisible}[r.IntN(4)]
	switch r.IntN(7) {
	case 0:
		req.keptTogether().near(Neighbours{"c0": r.Int64N(3), "c1": r.Int64N(3)})
	case 1:
		req.duplicated()
	case 2:
		req.dividedBy(v1alpha1.ByEven)
	case 3:
		req.weighing(map[string]int32{"c0": r.Int32N(4), "c1": 2, "c3": 1})
	case 4:
		req.pinned("c0", "c2", "c3")
	case 5:
		req.pinnedToAll()
	}
	if r.IntN(4) == 0 {
		req.leaving("c1")
	}
	return clusters, req.Request
}

func TestPlaceKeepsItsPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 30000 {
		clusters, req := randomPlacement(r)
		got := Place(NewSnapshot(clusters), req)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\npolicy %+v\nresult %s %q", problem, clusters, req, req.Policy,
				got.Decision, got.Message())
		}
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		other := Place(NewSnapshot(clusters), req)
		if other.Message() != got.Message() || !other.Decision.Equal(got.Decision) {
			t.Fatalf("the order of clusters matters: %q, then %q", got.Message(), other.Message())
		}
		settled := req
		settled.Current = got.Decision
		again := Place(NewSnapshot(used(clusters, req, got.Decision)), settled)
		if !again.Decision.Equal(got.Decision) {
			t.Fatalf("placing again moves something: from %s to %s\nclusters %+v\nrequest %+v\npolicy %+v",
				got.Decision, again.Decision, clusters, req, req.Policy)
		}
	}
}

// judgePlacement checks what holds for every decision, by looking at the result alone.
func judgePlacement(clusters []Cluster, req Request, got Result) string {
	replicas, total := int64(req.Workload.Replicas), got.Decision.Total()
	duplicate := got.Strategy == Duplicate
	if !duplicate && total+int64(got.Unplaced) != replicas {
		return "the sum is wrong"
	}
	if len(got.Failures) == 0 && got.Annotation() != got.Decision.String() {
		return "the annotation is not the decision"
	}
	if (got.Strategy == Whole || req.Workload.Division == Indivisible) && len(got.Decision) > 1 {
		return "whole, yet on several clusters"
	}
	if replicas == 0 && !duplicate && len(got.Decision) > 1 {
		return "no replicas, yet on several clusters"
	}
	stayed := 0
	for i, c := range clusters {
		v, share := verdictOn(got, c.Name), int64(got.Decision[c.Name].Replicas)
		current, held := req.Current[c.Name]
		_, placed := got.Decision[c.Name]
		if current.Replicas > 0 {
			stayed++
		}
		switch {
		case share < 0 || share > replicas:
			return "a share out of range"
		case placed && share == 0 && replicas > 0:
			return "a share of nothing"
		case share > int64(current.Replicas) && (c.Unschedulable || c.Ready != metav1.ConditionTrue || req.Evict[c.Name]):
			return "a share grew where nothing new may go: " + clusters[i].Name
		case placed && !held && !v.Feasible:
			return "placed on a cluster that was never feasible"
		case !v.Feasible && len(v.Reasons) == 0:
			return "refused without a reason"
		}
	}
	if stayed > 0 && len(got.Decision) == 0 {
		return "what ran was placed nowhere"
	}
	for _, v := range got.Verdicts {
		if v.Feasible && len(got.Decision) == 0 {
			return "nothing placed, though a cluster is feasible"
		}
	}
	return ""
}

func verdictOn(r Result, name string) Verdict {
	for _, v := range r.Verdicts {
		if v.Cluster == name {
			return v
		}
	}
	return Verdict{}
}

// used is what the clusters have left once the decision is carried out.
func used(clusters []Cluster, req Request, d Decision) []Cluster {
	out := slices.Clone(clusters)
	for i := range out {
		if out[i].Free == nil {
			continue
		}
		name := out[i].Name
		out[i].Free = out[i].Free.Plus(req.Workload.Requests, int64(req.Current[name].Replicas)-int64(d[name].Replicas))
	}
	return out
}

func TestPlaceLeavesItsArgumentsAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		clusters, req := randomPlacement(r)
		before := fmt.Sprintf("%+v %+v", clusters, req)
		Place(NewSnapshot(clusters), req)
		if after := fmt.Sprintf("%+v %+v", clusters, req); after != before {
			t.Fatalf("\nbefore %s\n after %s", before, after)
		}
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(int32(5), int64(1), int64(2), int64(0), int64(9), int64(9), int32(2), int32(3))
	f.Add(int32(-1), int64(-1), int64(1<<62), int64(1<<40), int64(-9), int64(1<<62), int32(-2), int32(1<<30))
	f.Fuzz(func(t *testing.T, replicas int32, w1, w2, w3, c1, c2 int64, l1, l3 int32) {
		weights := map[string]int64{"a": w1, "b": w2, "c": w3}
		capacity := map[string]int64{"a": c1, "b": c2}
		last := Decision{"a": {Replicas: l1}, "c": {Replicas: l3}}
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
				t.Fatalf("%d unplaced, though %s is unbounded", unplaced, name)
			}
		}
		if again, _ := Divide(replicas, weights, capacity, got); !again.Equal(got) {
			t.Fatalf("%s, then %s", got, again)
		}
	})
}
