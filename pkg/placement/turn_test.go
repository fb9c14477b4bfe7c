package placement

import (
	"math/rand/v2"
	"testing"
)

func TestTurn(t *testing.T) {
	for name, test := range map[string]struct {
		want, have Range
		others     []Range
		handed     bool
		now        Range
		held       bool
	}{
		"nobody else has any":               {want: Range{0, 6}, now: Range{0, 6}},
		"others have other ones":            {want: Range{3, 6}, others: []Range{{0, 3}, {6, 9}}, now: Range{3, 6}},
		"all are still elsewhere":           {want: Range{0, 6}, others: []Range{{0, 6}}, held: true},
		"one is still elsewhere":            {want: Range{0, 6}, others: []Range{{5, 6}}, now: Range{0, 5}, held: true},
		"the last is handed over":           {want: Range{0, 6}, others: []Range{{0, 5}}, handed: true, now: Range{5, 6}, held: true},
		"and left without the first":        {want: Range{0, 6}, others: []Range{{0, 5}}, held: true},
		"of two parts it is handed one":     {want: Range{0, 6}, others: []Range{{2, 3}}, handed: true, now: Range{3, 6}, held: true},
		"and begins with the other":         {want: Range{0, 6}, others: []Range{{2, 3}}, now: Range{0, 2}, held: true},
		"it gets what is next to its own":   {want: Range{0, 6}, have: Range{0, 1}, others: []Range{{2, 3}}, now: Range{0, 2}, held: true},
		"and on the other side as well":     {want: Range{0, 6}, have: Range{5, 6}, others: []Range{{0, 2}, {2, 3}}, now: Range{3, 6}, held: true},
		"it keeps what it has":              {want: Range{0, 6}, have: Range{0, 3}, others: []Range{{3, 6}}, now: Range{0, 3}, held: true},
		"it gives up what it is to give up": {want: Range{2, 6}, have: Range{0, 3}, others: []Range{{3, 6}}, now: Range{2, 3}, held: true},
		"it shrinks without asking":         {want: Range{0, 2}, have: Range{0, 6}, others: []Range{{6, 9}}, now: Range{0, 2}},
		"what it has is its own, whatever others seem to have": {
			want: Range{0, 3}, have: Range{0, 3}, others: []Range{{2, 4}}, now: Range{0, 3},
		},
		"two that change places both give up first": {want: Range{3, 6}, have: Range{0, 3}, others: []Range{{3, 6}}, held: true},
		"nothing is wanted":                         {have: Range{0, 3}, others: []Range{{0, 3}}},
	} {
		now, held := Turn(test.want, test.have, test.others, test.handed)
		if now != test.now || held != test.held {
			t.Errorf("%s: %v, held %t; want %v, %t", name, now, held, test.now, test.held)
		}
	}
}

func TestRelease(t *testing.T) {
	for name, test := range map[string]struct {
		want, have Range
		heirs      []Heir
		keep       Range
	}{
		"what nobody else is to have goes at once":      {want: Range{0, 2}, have: Range{0, 6}, keep: Range{0, 2}},
		"a workload that grows gives up nothing":        {want: Range{0, 6}, have: Range{0, 3}, keep: Range{0, 6}},
		"a move begins with the highest":                {have: Range{0, 3}, heirs: []Heir{{Decided: Range{0, 3}, Served: true}}, keep: Range{0, 2}},
		"the next waits until that serves":              {have: Range{0, 2}, heirs: []Heir{{Decided: Range{0, 3}, Has: Range{2, 3}}}, keep: Range{0, 2}},
		"and goes when it does":                         {have: Range{0, 2}, heirs: []Heir{{Decided: Range{0, 3}, Has: Range{2, 3}, Served: true}}, keep: Range{0, 1}},
		"the last one goes too":                         {have: Range{0, 1}, heirs: []Heir{{Decided: Range{0, 3}, Has: Range{1, 3}, Served: true}}},
		"scaled down on the move, what is over goes":    {have: Range{0, 6}, heirs: []Heir{{Decided: Range{0, 3}, Served: true}}, keep: Range{0, 2}},
		"also while the rest waits":                     {have: Range{0, 6}, heirs: []Heir{{Decided: Range{0, 3}}}, keep: Range{0, 3}},
		"what an heir has already goes at once":         {have: Range{0, 3}, heirs: []Heir{{Decided: Range{0, 3}, Has: Range{0, 3}}}},
		"a part stays":                                  {want: Range{0, 3}, have: Range{0, 6}, heirs: []Heir{{Decided: Range{3, 6}, Served: true}}, keep: Range{0, 5}},
		"a neighbour below gets the lowest first":       {have: Range{3, 6}, heirs: []Heir{{Decided: Range{0, 6}, Has: Range{0, 3}, Served: true}}, keep: Range{4, 6}},
		"unless it is not well":                         {have: Range{3, 6}, heirs: []Heir{{Decided: Range{0, 6}, Has: Range{0, 3}}}, keep: Range{3, 6}},
		"a neighbour above gets the highest first":      {have: Range{0, 3}, heirs: []Heir{{Decided: Range{0, 6}, Has: Range{3, 6}, Served: true}}, keep: Range{0, 2}},
		"who has nothing to do with it does not matter": {have: Range{0, 3}, heirs: []Heir{{Decided: Range{0, 3}, Served: true}, {Decided: Range{3, 6}}}, keep: Range{0, 2}},
		"what is kept may be at the end":                {want: Range{3, 6}, have: Range{0, 6}, heirs: []Heir{{Decided: Range{0, 3}, Served: true}}, keep: Range{1, 6}},
	} {
		if keep := Release(test.want, test.have, test.heirs); keep != test.keep {
			t.Errorf("%s: keeps %v, want %v", name, keep, test.keep)
		}
	}
}

// runner is a cluster in a simulation: told is what it was told to run, runs is what it runs, which follows some time later.
type runner struct{ told, runs Range }

// TestNoNumberEverRunsTwice lets clusters carry out one decision after another, each in its own time, and never waits for them.
func TestNoNumberEverRunsTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	names := []string{"east", "north", "west"}
	for range 1000 {
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
		for range 100 { // left alone, they arrive, one number after another
			for _, name := range names {
				tell(clusters, name, decision)
				clusters[name].runs = clusters[name].told
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

func rangeOf(s Share) Range { return Range{s.Start, s.Start + s.Replicas} }

func tell(clusters map[string]*runner, name string, decision Decision) {
	var others []Range
	var heirs []Heir
	handed := false
	for other, c := range clusters {
		if other == name {
			continue
		}
		others = append(others, c.told, c.runs)
		handed = handed || !c.told.Intersect(rangeOf(decision[name])).Empty()
		heirs = append(heirs, Heir{Decided: rangeOf(decision[other]), Has: c.told, Served: serves(clusters, other, decision)})
	}
	have := clusters[name].told
	clusters[name].told, _ = Turn(Release(rangeOf(decision[name]), have, heirs), have, others, handed)
}

func serves(clusters map[string]*runner, name string, decision Decision) bool {
	var others []Range
	for other, c := range clusters {
		if other != name {
			others = append(others, c.told)
		}
	}
	serving := clusters[name].runs.Intersect(clusters[name].told)
	return Serves(rangeOf(decision[name]), clusters[name].told, serving.End-serving.Start, others)
}

// TestAMoveMissesOneNumberAtATime moves all of a workload between clusters and counts what serves.
func TestAMoveMissesOneNumberAtATime(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	names := []string{"east", "north", "west"}
	for range 500 {
		clusters, from := map[string]*runner{}, randomRanges(r, names)
		for _, name := range names {
			clusters[name] = &runner{told: rangeOf(from[name]), runs: rangeOf(from[name])}
		}
		total := int32(from.Total())
		to := Decision{names[r.IntN(3)]: {Replicas: total}}
		for range 400 {
			name := names[r.IntN(len(names))]
			if r.IntN(2) == 0 {
				tell(clusters, name, to)
			} else {
				clusters[name].runs = clusters[name].told
			}
			var serve int32
			for _, c := range clusters {
				part := c.runs.Intersect(c.told)
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
