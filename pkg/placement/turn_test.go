package placement

import (
	"math/rand/v2"
	"testing"
)

func TestTurn(t *testing.T) {
	for name, test := range map[string]struct {
		want, have Range
		others     []Range
		now        Range
		held       bool
	}{
		"nobody else has any":               {want: Range{0, 6}, now: Range{0, 6}},
		"others have other ones":            {want: Range{3, 6}, others: []Range{{0, 3}, {6, 9}}, now: Range{3, 6}},
		"all are still elsewhere":           {want: Range{0, 6}, others: []Range{{0, 6}}, held: true},
		"one is still elsewhere":            {want: Range{0, 6}, others: []Range{{5, 6}}, held: true},
		"it keeps what it has":              {want: Range{0, 6}, have: Range{0, 3}, others: []Range{{4, 6}}, now: Range{0, 3}, held: true},
		"it gives up what it is to give up": {want: Range{2, 6}, have: Range{0, 3}, others: []Range{{4, 6}}, now: Range{2, 3}, held: true},
		"it shrinks without asking":         {want: Range{0, 2}, have: Range{0, 6}, others: []Range{{6, 9}}, now: Range{0, 2}},
		"what it has is its own, whatever others seem to have": {
			want: Range{0, 3}, have: Range{0, 3}, others: []Range{{2, 4}}, now: Range{0, 3},
		},
		"two that change places both give up first": {want: Range{3, 6}, have: Range{0, 3}, others: []Range{{3, 6}}, held: true},
		"nothing is wanted":                         {have: Range{0, 3}, others: []Range{{0, 3}}},
	} {
		now, held := Turn(test.want, test.have, test.others)
		if now != test.now || held != test.held {
			t.Errorf("%s: %v, held %t; want %v, %t", name, now, held, test.now, test.held)
		}
	}
}

// runner is a cluster in a simulation: told is what it was told to run, runs is what it runs, which follows some time later.
type runner struct{ told, runs Range }

// TestNoNumberEverRunsTwice lets clusters carry out one decision after another, each in its own time, and never waits for them.
func TestNoNumberEverRunsTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	names := []string{"east", "north", "west"}
	for range 3000 {
		clusters := map[string]*runner{}
		for _, name := range names {
			clusters[name] = &runner{}
		}
		var decision Decision
		for step := range 60 {
			if step%15 == 0 {
				decision = randomRanges(r, names)
			}
			name := names[r.IntN(len(names))]
			if r.IntN(2) == 0 {
				tell(clusters, name, decision)
			} else {
				clusters[name].runs = clusters[name].told
			}
			if twice(clusters) {
				t.Fatalf("a number runs twice: east %+v, north %+v, west %+v on the way to %s",
					*clusters["east"], *clusters["north"], *clusters["west"], decision)
			}
		}
		for range 4 { // left alone, they arrive
			for _, name := range names {
				tell(clusters, name, decision)
				clusters[name].runs = clusters[name].told
			}
		}
		for _, name := range names {
			if want := rangeOf(decision[name]); clusters[name].runs != want && !(want.Empty() && clusters[name].runs.Empty()) {
				t.Fatalf("%s runs %+v, want %+v", name, clusters[name].runs, want)
			}
		}
	}
}

func rangeOf(s Share) Range { return Range{s.Start, s.Start + s.Replicas} }

func tell(clusters map[string]*runner, name string, decision Decision) {
	var others []Range
	for other, c := range clusters {
		if other != name {
			others = append(others, c.told, c.runs)
		}
	}
	clusters[name].told, _ = Turn(rangeOf(decision[name]), clusters[name].told, others)
}

func twice(clusters map[string]*runner) bool {
	for one, a := range clusters {
		for two, b := range clusters {
			if one < two && !a.runs.Intersect(b.runs).Empty() {
				return true
			}
		}
	}
	return false
}

func randomRanges(r *rand.Rand, names []string) Decision {
	names = append([]string(nil), names...)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	out, next := Decision{}, int32(0)
	for _, name := range names[:1+r.IntN(len(names))] {
		share := Share{Start: next, Replicas: r.Int32N(5)}
		out[name] = share
		next += share.Replicas
	}
	return out
}
