package move

import (
	"math/rand/v2"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestTurn(t *testing.T) {
	for name, test := range map[string]struct {
		want, have placement.Range
		others     []placement.Range
		handed     bool
		now        placement.Range
		held       bool
	}{
		"nobody else has any":               {want: placement.Range{Start: 0, End: 6}, now: placement.Range{Start: 0, End: 6}},
		"others have other ones":            {want: placement.Range{Start: 3, End: 6}, others: []placement.Range{{Start: 0, End: 3}, {Start: 6, End: 9}}, now: placement.Range{Start: 3, End: 6}},
		"all are still elsewhere":           {want: placement.Range{Start: 0, End: 6}, others: []placement.Range{{Start: 0, End: 6}}, held: true},
		"one is still elsewhere":            {want: placement.Range{Start: 0, End: 6}, others: []placement.Range{{Start: 5, End: 6}}, now: placement.Range{Start: 0, End: 5}, held: true},
		"the last is handed over":           {want: placement.Range{Start: 0, End: 6}, others: []placement.Range{{Start: 0, End: 5}}, handed: true, now: placement.Range{Start: 5, End: 6}, held: true},
		"and left without the first":        {want: placement.Range{Start: 0, End: 6}, others: []placement.Range{{Start: 0, End: 5}}, held: true},
		"of two parts it is handed one":     {want: placement.Range{Start: 0, End: 6}, others: []placement.Range{{Start: 2, End: 3}}, handed: true, now: placement.Range{Start: 3, End: 6}, held: true},
		"and begins with the other":         {want: placement.Range{Start: 0, End: 6}, others: []placement.Range{{Start: 2, End: 3}}, now: placement.Range{Start: 0, End: 2}, held: true},
		"it gets what is next to its own":   {want: placement.Range{Start: 0, End: 6}, have: placement.Range{Start: 0, End: 1}, others: []placement.Range{{Start: 2, End: 3}}, now: placement.Range{Start: 0, End: 2}, held: true},
		"and on the other side as well":     {want: placement.Range{Start: 0, End: 6}, have: placement.Range{Start: 5, End: 6}, others: []placement.Range{{Start: 0, End: 2}, {Start: 2, End: 3}}, now: placement.Range{Start: 3, End: 6}, held: true},
		"it keeps what it has":              {want: placement.Range{Start: 0, End: 6}, have: placement.Range{Start: 0, End: 3}, others: []placement.Range{{Start: 3, End: 6}}, now: placement.Range{Start: 0, End: 3}, held: true},
		"it gives up what it is to give up": {want: placement.Range{Start: 2, End: 6}, have: placement.Range{Start: 0, End: 3}, others: []placement.Range{{Start: 3, End: 6}}, now: placement.Range{Start: 2, End: 3}, held: true},
		"it shrinks without asking":         {want: placement.Range{Start: 0, End: 2}, have: placement.Range{Start: 0, End: 6}, others: []placement.Range{{Start: 6, End: 9}}, now: placement.Range{Start: 0, End: 2}},
		"what it has is its own, whatever others seem to have": {
			want: placement.Range{Start: 0, End: 3}, have: placement.Range{Start: 0, End: 3}, others: []placement.Range{{Start: 2, End: 4}}, now: placement.Range{Start: 0, End: 3},
		},
		"two that change places both give up first": {want: placement.Range{Start: 3, End: 6}, have: placement.Range{Start: 0, End: 3}, others: []placement.Range{{Start: 3, End: 6}}, held: true},
		"nothing is wanted":                         {have: placement.Range{Start: 0, End: 3}, others: []placement.Range{{Start: 0, End: 3}}},
	} {
		now, held := Acquire(test.want, test.have, test.others, test.handed)
		if now != test.now || held != test.held {
			t.Errorf("%s: %v, held %t; want %v, %t", name, now, held, test.now, test.held)
		}
	}
}

func TestRelease(t *testing.T) {
	for name, test := range map[string]struct {
		want, have placement.Range
		heirs      []Heir
		keep       placement.Range
	}{
		"what nobody else is to have goes at once":      {want: placement.Range{Start: 0, End: 2}, have: placement.Range{Start: 0, End: 6}, keep: placement.Range{Start: 0, End: 2}},
		"a workload that grows gives up nothing":        {want: placement.Range{Start: 0, End: 6}, have: placement.Range{Start: 0, End: 3}, keep: placement.Range{Start: 0, End: 6}},
		"a move begins with the highest":                {have: placement.Range{Start: 0, End: 3}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Served: true}}, keep: placement.Range{Start: 0, End: 2}},
		"the next waits until that serves":              {have: placement.Range{Start: 0, End: 2}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Has: placement.Range{Start: 2, End: 3}}}, keep: placement.Range{Start: 0, End: 2}},
		"and goes when it does":                         {have: placement.Range{Start: 0, End: 2}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Has: placement.Range{Start: 2, End: 3}, Served: true}}, keep: placement.Range{Start: 0, End: 1}},
		"the last one goes too":                         {have: placement.Range{Start: 0, End: 1}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Has: placement.Range{Start: 1, End: 3}, Served: true}}},
		"scaled down on the move, what is over goes":    {have: placement.Range{Start: 0, End: 6}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Served: true}}, keep: placement.Range{Start: 0, End: 2}},
		"also while the rest waits":                     {have: placement.Range{Start: 0, End: 6}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}}}, keep: placement.Range{Start: 0, End: 3}},
		"what an heir has already goes at once":         {have: placement.Range{Start: 0, End: 3}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Has: placement.Range{Start: 0, End: 3}}}},
		"a part stays":                                  {want: placement.Range{Start: 0, End: 3}, have: placement.Range{Start: 0, End: 6}, heirs: []Heir{{Decided: placement.Range{Start: 3, End: 6}, Served: true}}, keep: placement.Range{Start: 0, End: 5}},
		"a neighbour below gets the lowest first":       {have: placement.Range{Start: 3, End: 6}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 6}, Has: placement.Range{Start: 0, End: 3}, Served: true}}, keep: placement.Range{Start: 4, End: 6}},
		"unless it is not well":                         {have: placement.Range{Start: 3, End: 6}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 6}, Has: placement.Range{Start: 0, End: 3}}}, keep: placement.Range{Start: 3, End: 6}},
		"a neighbour above gets the highest first":      {have: placement.Range{Start: 0, End: 3}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 6}, Has: placement.Range{Start: 3, End: 6}, Served: true}}, keep: placement.Range{Start: 0, End: 2}},
		"who has nothing to do with it does not matter": {have: placement.Range{Start: 0, End: 3}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Served: true}, {Decided: placement.Range{Start: 3, End: 6}}}, keep: placement.Range{Start: 0, End: 2}},
		"what is kept may be at the end":                {want: placement.Range{Start: 3, End: 6}, have: placement.Range{Start: 0, End: 6}, heirs: []Heir{{Decided: placement.Range{Start: 0, End: 3}, Served: true}}, keep: placement.Range{Start: 1, End: 6}},
	} {
		if keep := Release(test.want, test.have, test.heirs); keep != test.keep {
			t.Errorf("%s: keeps %v, want %v", name, keep, test.keep)
		}
	}
}

// runner is a cluster in a simulation: assigned is what it is to run, runs is what it runs, which follows some time later.
type runner struct{ assigned, runs placement.Range }

// TestNoNumberEverRunsTwice lets clusters carry out one decision after another, each in its own time, and never waits for them.
func TestNoNumberEverRunsTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	names := []string{"east", "north", "west"}
	for range 1000 {
		clusters := map[string]*runner{}
		for _, name := range names {
			clusters[name] = &runner{}
		}
		var decision placement.Decision
		for step := range 60 {
			if step%15 == 0 {
				decision = randomRanges(r, names)
			}
			name := names[r.IntN(len(names))]
			if r.IntN(2) == 0 {
				tell(clusters, name, decision)
			} else {
				clusters[name].runs = clusters[name].assigned
			}
			if twice(clusters) {
				t.Fatalf("a number runs twice: east %+v, north %+v, west %+v on the way to %s",
					*clusters["east"], *clusters["north"], *clusters["west"], decision)
			}
		}
		for range 100 { // left alone, they arrive, one number after another
			for _, name := range names {
				tell(clusters, name, decision)
				clusters[name].runs = clusters[name].assigned
			}
		}
		for _, name := range names {
			if want := rangeOf(decision[name]); clusters[name].runs != want && !(want.Empty() && clusters[name].runs.Empty()) {
				t.Fatalf("%s runs %+v, want %+v on the way to %s: %+v %+v %+v", name, clusters[name].runs, want, decision,
					*clusters["east"], *clusters["north"], *clusters["west"])
			}
		}
	}
}

func rangeOf(s placement.Share) placement.Range {
	return placement.Range{Start: s.Start, End: s.Start + s.Replicas}
}

func tell(clusters map[string]*runner, name string, decision placement.Decision) {
	var others []placement.Range
	var heirs []Heir
	handed := false
	for other, c := range clusters {
		if other == name {
			continue
		}
		others = append(others, c.assigned, c.runs)
		handed = handed || !c.assigned.Intersect(rangeOf(decision[name])).Empty()
		heirs = append(heirs, Heir{Decided: rangeOf(decision[other]), Has: c.assigned, Served: serves(clusters, other, decision)})
	}
	have := clusters[name].assigned
	clusters[name].assigned, _ = Acquire(Release(rangeOf(decision[name]), have, heirs), have, others, handed)
}

func serves(clusters map[string]*runner, name string, decision placement.Decision) bool {
	var others []placement.Range
	for other, c := range clusters {
		if other != name {
			others = append(others, c.assigned)
		}
	}
	serving := clusters[name].runs.Intersect(clusters[name].assigned)
	return Serves(rangeOf(decision[name]), clusters[name].assigned, serving.End-serving.Start, others)
}

// TestAMoveMissesOneNumberAtATime moves all of a workload between clusters and counts what serves.
func TestAMoveMissesOneNumberAtATime(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	names := []string{"east", "north", "west"}
	for range 500 {
		clusters, from := map[string]*runner{}, randomRanges(r, names)
		for _, name := range names {
			clusters[name] = &runner{assigned: rangeOf(from[name]), runs: rangeOf(from[name])}
		}
		total := int32(from.Total())
		to := placement.Decision{names[r.IntN(3)]: {Replicas: total}}
		for range 400 {
			name := names[r.IntN(len(names))]
			if r.IntN(2) == 0 {
				tell(clusters, name, to)
			} else {
				clusters[name].runs = clusters[name].assigned
			}
			var serve int32
			for _, c := range clusters {
				part := c.runs.Intersect(c.assigned)
				serve += part.End - part.Start
			}
			if serve < total-1 {
				t.Fatalf("%d of %d serve on the way from %s to %s: %+v %+v %+v",
					serve, total, from, to, *clusters["east"], *clusters["north"], *clusters["west"])
			}
		}
	}
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

func randomRanges(r *rand.Rand, names []string) placement.Decision {
	names = append([]string(nil), names...)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	out, next := placement.Decision{}, int32(0)
	for _, name := range names[:1+r.IntN(len(names))] {
		share := placement.Share{Start: next, Replicas: r.Int32N(5)}
		out[name] = share
		next += share.Replicas
	}
	return out
}
