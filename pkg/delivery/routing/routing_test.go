package routing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

func TestSharesAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		shares map[string]int32
		want   string
	}{
		"the primary has the rest":    {shares: map[string]int32{"canary": 10}},
		"all are named":               {shares: map[string]int32{"primary": 70, "canary": 20, "baseline": 10}},
		"nothing is named":            {},
		"all goes to one":             {shares: map[string]int32{"canary": 100}},
		"they are too little":         {shares: map[string]int32{"primary": 70, "canary": 20}, want: "add up to 90"},
		"they are too much":           {shares: map[string]int32{"primary": 90, "canary": 20}, want: "add up to 110"},
		"they are too much alone":     {shares: map[string]int32{"baseline": 60, "canary": 60}, want: "add up to 120"},
		"one is negative":             {shares: map[string]int32{"canary": -1}, want: "traffic.canary: -1"},
		"one is above 100":            {shares: map[string]int32{"canary": 101}, want: "traffic.canary: 101"},
		"they overflow to a good sum": {shares: map[string]int32{"canary": math.MaxInt32, "primary": math.MaxInt32}, want: "traffic.canary"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(test.shares)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if err != nil {
				return
			}
			total := int32(0)
			for _, share := range Complete(test.shares) {
				total += share
			}
			if total != Whole {
				t.Errorf("completed, they add up to %d", total)
			}
		})
	}
}

// running is a set with the primary in all of so many clusters, and a canary in the first ones.
func running(clusters, canaries int) delivery.Set {
	out := delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{}}}
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		out[delivery.Primary].Clusters[name] = delivery.Part{Traffic: 100}
		if i < canaries {
			if out[delivery.Canary].Clusters == nil {
				out[delivery.Canary] = delivery.Variant{Clusters: map[string]delivery.Part{}}
			}
			out[delivery.Canary].Clusters[name] = delivery.Part{Replicas: map[string]int32{"Deployment/web": 1}}
		}
	}
	return out
}

func loads(of ...int64) map[string]int64 {
	out := map[string]int64{}
	for i, load := range of {
		out[fmt.Sprintf("c%d", i)] = load
	}
	return out
}

func TestSharesOverClusters(t *testing.T) {
	ten := map[string]int32{delivery.Canary: 10, delivery.Primary: 90}
	for name, test := range map[string]struct {
		set    delivery.Set
		wanted map[string]int32
		loads  map[string]int64
		want   map[string]map[string]int32
	}{
		"what is everywhere has its share everywhere": {set: running(2, 2), wanted: ten, loads: loads(3, 3),
			want: map[string]map[string]int32{"c0": {"primary": 90, "canary": 10}, "c1": {"primary": 90, "canary": 10}}},
		"whatever the clusters' sizes": {set: running(2, 2), wanted: ten, loads: loads(9, 1),
			want: map[string]map[string]int32{"c0": {"primary": 90, "canary": 10}, "c1": {"primary": 90, "canary": 10}}},
		"what is in 2 of 5 clusters has more of it there": {set: running(5, 2), wanted: ten, loads: loads(3, 3, 3, 3, 3),
			want: map[string]map[string]int32{"c0": {"primary": 75, "canary": 25}, "c1": {"primary": 75, "canary": 25}, "c2": {"primary": 100}, "c3": {"primary": 100}, "c4": {"primary": 100}}},
		"and all where that is not enough": {set: running(3, 1), wanted: map[string]int32{delivery.Canary: 50}, loads: loads(1, 5, 5),
			want: map[string]map[string]int32{"c0": {"canary": 100, "primary": 0}, "c1": {"primary": 100}, "c2": {"primary": 100}}},
		"what is nowhere has nothing": {set: running(2, 0), wanted: ten, loads: loads(3, 3),
			want: map[string]map[string]int32{"c0": {"primary": 100}, "c1": {"primary": 100}}},
		"a copy without pods is not there": {set: delivery.Set{
			delivery.Primary: {Clusters: map[string]delivery.Part{"c0": {}, "c1": {}}},
			delivery.Canary:  {Clusters: map[string]delivery.Part{"c0": {Replicas: map[string]int32{"Deployment/web": 0}}, "c1": {Replicas: map[string]int32{"Deployment/web": 1}}}},
		}, wanted: ten, loads: loads(3, 3), want: map[string]map[string]int32{"c0": {"primary": 100}, "c1": {"primary": 80, "canary": 20}}},
		"what nobody else can have a copy has": {set: delivery.Set{delivery.Canary: {Clusters: map[string]delivery.Part{"c0": {}}}}, wanted: ten, loads: loads(3),
			want: map[string]map[string]int32{"c0": {"canary": 100}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Spread(test.set, test.wanted, test.loads)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Rule 6.
func TestTrafficMovesOnlyToWhatIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		present, wanted map[string]int32
		endpoints       map[string]int32
		want            map[string]int32
		reason          string
	}{
		"what is ready gets its share":      {present: map[string]int32{"primary": 100, "canary": 0}, wanted: map[string]int32{"primary": 90, "canary": 10}, endpoints: map[string]int32{"primary": 3, "canary": 1}, want: map[string]int32{"primary": 90, "canary": 10}},
		"what is not waits":                 {present: map[string]int32{"primary": 100, "canary": 0}, wanted: map[string]int32{"primary": 90, "canary": 10}, endpoints: map[string]int32{"primary": 3}, want: map[string]int32{"primary": 100, "canary": 0}, reason: "canary"},
		"what has some keeps it":            {present: map[string]int32{"primary": 90, "canary": 10}, wanted: map[string]int32{"primary": 50, "canary": 50}, endpoints: map[string]int32{"primary": 3}, want: map[string]int32{"primary": 90, "canary": 10}, reason: "canary"},
		"what is broken can be left":        {present: map[string]int32{"primary": 50, "canary": 50}, wanted: map[string]int32{"primary": 100, "canary": 0}, endpoints: map[string]int32{"primary": 3}, want: map[string]int32{"primary": 100, "canary": 0}},
		"but not for what is broken too":    {present: map[string]int32{"primary": 50, "canary": 50}, wanted: map[string]int32{"primary": 100, "canary": 0}, want: map[string]int32{"primary": 50, "canary": 50}, reason: "primary"},
		"one of two that grow is ready":     {present: map[string]int32{"primary": 100}, wanted: map[string]int32{"primary": 60, "canary": 30, "baseline": 10}, endpoints: map[string]int32{"canary": 1}, want: map[string]int32{"primary": 70, "canary": 30, "baseline": 0}, reason: "baseline"},
		"what is to vanish keeps meanwhile": {present: map[string]int32{"primary": 0, "canary": 100}, wanted: map[string]int32{"primary": 100}, want: map[string]int32{"primary": 0, "canary": 100}, reason: "primary"},
		"what is first gets all":            {present: map[string]int32{}, wanted: map[string]int32{"primary": 100}, want: map[string]int32{"primary": 100}},
		"nothing changes":                   {present: map[string]int32{"primary": 100}, wanted: map[string]int32{"primary": 100}, want: map[string]int32{"primary": 100}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := delivery.Cluster{Variants: map[string]delivery.Report{}}
			for variant, n := range test.endpoints {
				seen.Variants[variant] = delivery.Report{Endpoints: n}
			}
			got, reason := Now("east", test.present, test.wanted, seen)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if test.reason == "" && reason != "" || test.reason != "" && !strings.Contains(reason, "the "+test.reason+` is ready in cluster "east"`) {
				t.Errorf("reason %q, want %q", reason, test.reason)
			}
		})
	}
}

func TestRandomSharesNeverGrowWithoutEndpointsAndAddUp(t *testing.T) {
	names := []string{delivery.Primary, delivery.Canary, delivery.Baseline}
	random := func(r *rand.Rand) map[string]int32 {
		a, b := r.Int32N(101), r.Int32N(101)
		return map[string]int32{names[0]: min(a, b), names[1]: max(a, b) - min(a, b), names[2]: 100 - max(a, b)}
	}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		present, wanted, seen := random(r), random(r), delivery.Cluster{Variants: map[string]delivery.Report{}}
		for _, name := range names {
			seen.Variants[name] = delivery.Report{Endpoints: r.Int32N(2)}
		}
		got, reason := Now("east", present, wanted, seen)
		total := int32(0)
		for name, share := range got {
			total += share
			if share > present[name] && seen.Variants[name].Endpoints == 0 {
				t.Errorf("seed %d: %s grows from %d to %d", seed, name, present[name], share)
			}
		}
		if total != 100 {
			t.Errorf("seed %d: they add up to %d", seed, total)
		}
		if (reason == "") != cmp.Equal(got, wanted) {
			t.Errorf("seed %d: %v of %v, and the reason is %q", seed, got, wanted, reason)
		}
		if second, _ := Now("east", got, wanted, seen); !cmp.Equal(second, got) {
			t.Errorf("seed %d: asked again, it goes on from %v to %v", seed, got, second)
		}
	}
}

func TestWhatHadTrafficIsDrained(t *testing.T) {
	gone := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		part  delivery.Part
		gone  time.Time
		at    time.Time
		known bool
	}{
		"what never had any goes at once":         {known: true},
		"what has some stays":                     {part: delivery.Part{Traffic: 1, Routed: true}, gone: gone},
		"what is not known to have lost it stays": {part: delivery.Part{Routed: true}},
		"what has lost it goes after the delay":   {part: delivery.Part{Routed: true}, gone: gone, at: gone.Add(30 * time.Second), known: true},
	} {
		t.Run(name, func(t *testing.T) {
			if at, known := MayGo(test.part, test.gone, 30*time.Second); !at.Equal(test.at) || known != test.known {
				t.Errorf("%s, %t, want %s, %t", at, known, test.at, test.known)
			}
		})
	}
}

func TestRandomSplitsAreExact(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		whole, shares := r.Int64N(200), map[string]int32{"a": r.Int32N(101), "b": r.Int32N(101), "c": r.Int32N(101)}
		weights, with := int32(0), int64(0)
		for _, share := range shares {
			if weights += share; share > 0 {
				with++
			}
		}
		for least, split := range []func(int64, map[string]int32) map[string]int64{Split, SplitAtLeastOne} {
			total, got := int64(0), split(whole, shares)
			for name, n := range got {
				total += n
				if exact := float64(whole) * float64(shares[name]) / float64(max(1, weights)); least == 0 && math.Abs(float64(n)-exact) >= 1 {
					t.Errorf("seed %d: %s has %d of %d, its part is %g", seed, name, n, whole, exact)
				}
				if least == 1 && n == 0 && shares[name] > 0 && whole >= with {
					t.Errorf("seed %d: %s has nothing of %d", seed, name, whole)
				}
			}
			if weights > 0 && total != whole {
				t.Errorf("seed %d: %d of %d are divided", seed, total, whole)
			}
		}
	}
}
