package move

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestStepKeepsTheBounds(t *testing.T) {
	running := func(replicas, available int32) Observed { return Observed{Replicas: replicas, Available: available} }
	replacing := func(replicas, available int32) Observed {
		return Observed{Replicas: replicas, Available: available, Replacing: true}
	}
	silent := func(replicas, available int32) Observed {
		return Observed{Replicas: replicas, Available: available, Silent: true}
	}
	for name, test := range map[string]struct {
		decision placement.Decision
		observed map[string]Observed
		bounds   Bounds
		want     placement.Decision
	}{
		"as many new ones are made as may be extra": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": running(4, 4)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 4, "west", 1),
		},
		"the next one when one has left": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": running(3, 3), "west": running(1, 1)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 3, "west", 2),
		},
		"one leaves for each that serves": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": running(4, 4), "west": running(2, 1)}, bounds: Bounds{Surge: 2},
			want: build.Shares("east", 3, "west", 2),
		},
		"without a surge, those that may be missing leave first": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": running(4, 4)}, bounds: Bounds{Unavailable: 2},
			want: build.Shares("east", 2, "west", 0),
		},
		"and the new ones come in their place": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": running(2, 2)}, bounds: Bounds{Unavailable: 2},
			want: build.Shares("east", 2, "west", 2),
		},
		"with both, some are missing and some are extra": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": running(4, 4)}, bounds: Bounds{Surge: 1, Unavailable: 1},
			want: build.Shares("east", 3, "west", 1),
		},
		"clusters are filled one after another": {
			decision: build.Shares("north", 2, "west", 2), observed: map[string]Observed{"east": running(4, 4)}, bounds: Bounds{Surge: 3},
			want: build.Shares("east", 4, "north", 2, "west", 1),
		},
		"a new workload is not held up": {
			decision: build.Shares("east", 2, "west", 2), bounds: Bounds{Surge: 1}, want: build.Shares("east", 2, "west", 2),
		},
		"nor one that is scaled up": {
			decision: build.Shares("east", 9, "west", 9), observed: map[string]Observed{"east": running(2, 2)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 9, "west", 9),
		},
		"a copy for one more cluster is wanted, not extra": {
			decision: placement.Decision{"east": {Replicas: 4}, "west": {Replicas: 4, Copy: true}}, observed: map[string]Observed{"east": running(4, 4)}, bounds: Bounds{Surge: 1},
			want: placement.Decision{"east": {Replicas: 4}, "west": {Replicas: 4, Copy: true}},
		},
		"a silent cluster is not waited for": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": {Replicas: 4, Available: 4, Silent: true}}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 4, "west", 4),
		},
		"turned round, what does not serve goes at once": {
			decision: build.Shares("east", 4), observed: map[string]Observed{"east": running(2, 2), "west": running(3, 2)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 2, "west", 2),
		},
		"in the middle of a rollout, what does not serve counts like what does": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": replacing(4, 3), "west": running(1, 0)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 4, "west", 1),
		},
		"and leaves for what serves elsewhere": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": replacing(4, 3), "west": running(1, 1)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 3, "west", 1),
		},
		"what serves leaves only for more": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": replacing(4, 3), "west": running(3, 3)}, bounds: Bounds{Surge: 3},
			want: build.Shares("east", 1, "west", 3),
		},
		"a rollout of which nothing serves keeps nothing": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": replacing(4, 0), "west": running(1, 0)}, bounds: Bounds{Surge: 1},
			want: build.Shares("west", 1),
		},
		"a workload that is scaled down in a rollout is not held up": {
			decision: build.Shares("east", 2), observed: map[string]Observed{"east": replacing(4, 1)}, bounds: Bounds{Surge: 1}, want: build.Shares("east", 2),
		},
		"what no Service leads to yet replaces no others": {
			decision: build.Shares("west", 4), bounds: Bounds{Surge: 2},
			observed: map[string]Observed{"east": running(4, 4), "west": {Replicas: 2, Available: 2, Unrouted: 1}},
			want:     build.Shares("east", 3, "west", 2),
		},
		"neither does what a silent cluster had": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": running(2, 2), "west": silent(4, 4)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 2, "west", 4),
		},
		"what has no place any more does not leave for nowhere": {
			decision: build.Shares("west", 1), observed: map[string]Observed{"east": running(3, 3), "west": running(1, 1)}, bounds: Bounds{Surge: 1, Asked: 3},
			want: build.Shares("east", 2, "west", 1),
		},
		"a cluster that has just answered again grows no further than the others": {
			decision: build.Shares("west", 6), observed: map[string]Observed{"east": running(6, 6), "west": silent(2, 0)}, bounds: Bounds{Surge: 2},
			want: build.Shares("east", 6, "west", 2),
		},
		"nothing leaves a silent cluster in place of what can": {
			decision: build.Shares("west", 4), bounds: Bounds{Surge: 1},
			observed: map[string]Observed{"east": silent(2, 2), "north": running(2, 2), "west": running(4, 4)},
			want:     build.Shares("east", 2, "west", 4),
		},
		"and then the old ones come back one by one": {
			decision: build.Shares("east", 4), observed: map[string]Observed{"east": running(2, 2), "west": running(2, 2)}, bounds: Bounds{Surge: 1},
			want: build.Shares("east", 3, "west", 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Step(test.decision, test.observed, test.bounds)); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRelieved(t *testing.T) {
	some := func(replicas, available int32) Observed { return Observed{Replicas: replicas, Available: available} }
	half := Rollout{MaxUnavailable: ptr.To(intstr.FromString("50%"))}
	for name, test := range map[string]struct {
		available int32
		elsewhere Observed
		own       Rollout
		want      bool
	}{
		"as many serve elsewhere": {available: 3, elsewhere: some(3, 3), want: true},
		"fewer do":                {available: 3, elsewhere: some(3, 2)},
		"there are fewer nodes, and all have one":        {available: 3, elsewhere: some(2, 2), want: true},
		"there are more nodes, and not all have one yet": {available: 3, elsewhere: some(9, 3), want: true},
		"no node there takes one":                        {available: 3, elsewhere: some(0, 0), want: true},
		"nothing serves that would have to be replaced":  {elsewhere: some(3, 0), want: true},
		"some may be missing":                            {available: 4, elsewhere: some(4, 2), own: half, want: true},
		"no more than these":                             {available: 4, elsewhere: some(4, 1), own: half},
		"never all":                                      {available: 1, elsewhere: some(1, 0), own: half},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Relieved(test.available, test.elsewhere, test.own); got != test.want {
				t.Errorf("relieved %t, want %t", got, test.want)
			}
		})
	}
}

func TestBoundsOf(t *testing.T) {
	value := func(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }
	for name, test := range map[string]struct {
		move   *v1alpha1.Move
		own    Rollout
		wanted int64
		want   Bounds
	}{
		"a workload without a strategy makes all anew at once": {wanted: 9, want: Bounds{Surge: placement.Unbounded}},
		"its own surge is rounded up, and nothing is missing":  {own: Rollout{value("25%"), value("25%")}, wanted: 5, want: Bounds{Surge: 2}},
		"without a surge of its own, what may be missing is rounded down": {
			own: Rollout{value("0"), value("25%")}, wanted: 9, want: Bounds{Unavailable: 2},
		},
		"one goes where both come out as none": {own: Rollout{value("0"), value("25%")}, wanted: 3, want: Bounds{Unavailable: 1}},
		"the policy wins over the workload":    {move: &v1alpha1.Move{MaxSurge: value("10%")}, own: Rollout{value("25%"), value("25%")}, wanted: 1000, want: Bounds{Surge: 100}},
		"the policy has some missing beside a surge": {
			move: &v1alpha1.Move{MaxSurge: value("1"), MaxUnavailable: value("50%")}, wanted: 5, want: Bounds{Surge: 1, Unavailable: 2},
		},
		"the policy forbids a surge, and the workload says what may be missing": {
			move: &v1alpha1.Move{MaxSurge: value("0")}, own: Rollout{value("25%"), value("3")}, wanted: 9, want: Bounds{Unavailable: 3},
		},
		"what cannot be read counts as unset": {move: &v1alpha1.Move{MaxSurge: value("many")}, own: Rollout{MaxSurge: value("2")}, wanted: 9, want: Bounds{Surge: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := BoundsOf(test.move, test.own, test.wanted); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// world is a set of clusters on the way to a decision.
type world struct {
	random *rand.Rand
	now    map[string]Observed
}

var compass = []string{"east", "north", "south", "west"}

func newWorld(random *rand.Rand, replicas int) *world {
	w := &world{random: random, now: map[string]Observed{}}
	for range replicas {
		c := compass[random.IntN(len(compass))]
		o := w.now[c]
		w.now[c] = Observed{Replicas: o.Replicas + 1, Available: o.Available + 1}
	}
	return w
}

func (w *world) anyDecision(replicas int) placement.Decision {
	d := placement.Decision{}
	for range replicas {
		c := compass[w.random.IntN(len(compass))]
		d[c] = placement.Share{Replicas: d[c].Replicas + 1}
	}
	return d
}

// step has one cluster, by chance, take its step, and by chance a replica become available.
func (w *world) step(decision placement.Decision, bounds Bounds) {
	c := compass[w.random.IntN(len(compass))]
	w.tell(c, Step(decision, w.now, bounds)[c].Replicas)
	c = compass[w.random.IntN(len(compass))]
	if o := w.now[c]; o.Available < o.Replicas {
		o.Available++
		w.now[c] = o
	}
}

func (w *world) tell(cluster string, replicas int32) {
	if replicas == 0 {
		delete(w.now, cluster)
		return
	}
	w.now[cluster] = Observed{Replicas: replicas, Available: min(w.now[cluster].Available, replicas)}
}

func (w *world) assigned() (n int32) {
	for _, o := range w.now {
		n += o.Replicas
	}
	return n
}

func (w *world) serving() (n int32) {
	for _, o := range w.now {
		n += o.serving()
	}
	return n
}

func (w *world) arrived(decision placement.Decision) bool {
	for _, c := range compass {
		if w.now[c] != (Observed{Replicas: decision[c].Replicas, Available: decision[c].Replicas}) {
			return false
		}
	}
	return true
}

// A move, simulated: whatever becomes available in whatever order, and however often the decision changes on the way, the number of
// serving replicas never falls below what is wanted less what may be missing, clusters are never assigned more than what is wanted and
// may be extra, and the move ends at the decision once everything serves.
func TestMovesKeepTheirBoundsAndArrive(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		replicas := random.IntN(12)
		bounds := Bounds{Surge: []int32{0, 1, 2, 5, placement.Unbounded}[random.IntN(5)], Unavailable: random.Int32N(4)}
		if bounds.Surge == 0 {
			bounds.Unavailable = max(1, bounds.Unavailable)
		}
		w := newWorld(random, replicas)
		decision, turns := w.anyDecision(replicas), random.IntN(4)
		for steps := 0; !w.arrived(decision); steps++ {
			if turns > 0 && random.IntN(8) == 0 {
				turns--
				decision = w.anyDecision(replicas)
			}
			before := fmt.Sprint(w.now)
			w.step(decision, bounds)
			if least := int32(replicas) - bounds.Unavailable; w.serving() < least {
				t.Fatalf("%d of %d replicas serve, with %+v, on the way from %s to %v", w.serving(), replicas, bounds, before, decision)
			}
			if most := int64(replicas) + int64(bounds.Surge); int64(w.assigned()) > most {
				t.Fatalf("clusters are assigned %d of %d replicas, with %+v, on the way from %s to %v", w.assigned(), replicas, bounds, before, decision)
			}
			if steps > 5000 {
				t.Fatalf("with %+v it does not arrive at %v, and is at %v", bounds, decision, w.now)
			}
		}
	}
}

// The new replicas of one cluster never become available.
func TestAMoveToWhereNothingServesKeepsTheRest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		replicas := 1 + random.IntN(9)
		bounds := Bounds{Surge: random.Int32N(3), Unavailable: random.Int32N(2)}
		if bounds.Surge == 0 {
			bounds.Unavailable = 1
		}
		w := &world{random: random, now: map[string]Observed{"east": {Replicas: int32(replicas), Available: int32(replicas)}}}
		decision := placement.Decision{"west": {Replicas: int32(replicas)}}
		for range 200 {
			w.step(decision, bounds)
			if west, has := w.now["west"]; has {
				west.Available = 0
				w.now["west"] = west
			}
		}
		if want := max(0, int32(replicas)-bounds.Unavailable); w.now["east"].Replicas != want {
			t.Fatalf("east has %d of %d replicas, with %+v, want %d: %v", w.now["east"].Replicas, replicas, bounds, want, w.now)
		}
	}
}

// A rollout that does not get on, in a cluster that is left for one where nothing serves: it may take away of the replicas that serve one
// for each that the cluster is assigned fewer, and so must not be assigned.
func TestABrokenRolloutTakesNoMoreInAMoveThanWithoutOne(t *testing.T) {
	for replicas := int32(2); replicas < 12; replicas++ {
		for missing := range replicas {
			now := map[string]Observed{"east": {Replicas: replicas, Available: replicas - missing, Replacing: true}}
			for range 20 {
				next := Step(placement.Decision{"west": {Replicas: replicas}}, now, Bounds{Surge: 1})
				less := now["east"].Replicas - next["east"].Replicas
				now["east"] = Observed{Replicas: next["east"].Replicas, Available: max(0, now["east"].Available-less), Replacing: true}
				now["west"] = Observed{Replicas: next["west"].Replicas}
			}
			if got := now["east"].Available; got != replicas-missing {
				t.Errorf("%d of %d replicas serve in the end, want %d", got, replicas, replicas-missing)
			}
		}
	}
}

// A cluster that sees late what was assigned to the one before it in order does not exceed the bound.
func TestGrowthIsBoundedAlsoWhereItIsSeenLate(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		replicas, surge := random.IntN(12), random.Int32N(4)
		w := newWorld(random, replicas)
		decision := w.anyDecision(replicas)
		bounds := Bounds{Surge: surge, Unavailable: 1}
		stale := maps.Clone(w.now)
		for _, c := range slices.Sorted(slices.Values(compass)) { // each goes by what all had at first
			if next := Step(decision, stale, bounds)[c].Replicas; next > stale[c].Replicas {
				w.tell(c, next)
			}
		}
		if most := int32(replicas) + surge; w.assigned() > most {
			t.Fatalf("clusters are assigned %d replicas, want %d at most: %v", w.assigned(), most, w.now)
		}
	}
}
