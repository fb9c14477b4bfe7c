package variants

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

var (
	v1 = delivery.Revision{Name: "web-v1", Hash: "aaa"}
	v2 = delivery.Revision{Name: "web-v2", Hash: "bbb"}
)

// parts makes a set of what cluster east runs: variant by variant.
func parts(of map[string]delivery.Part) delivery.Set {
	out := delivery.Set{}
	for name, part := range of {
		variant := delivery.Variant{Clusters: map[string]delivery.Part{"east": part}}
		if name != delivery.Primary {
			variant.Suffix = name
		}
		out[name] = variant
	}
	return out
}

func TestEdits(t *testing.T) {
	two := map[string]int32{"Deployment/web": 2}
	canary := delivery.Variant{Suffix: "canary"}
	running := parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 100}})
	split := parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 90}, "canary": {Revision: v2, Replicas: two, Traffic: 10, Routed: true}})
	for name, test := range map[string]struct {
		set  delivery.Set
		edit func(delivery.Set) delivery.Set
		want delivery.Set
	}{
		"what is first in a cluster gets its traffic": {
			edit: func(s delivery.Set) delivery.Set { return Roll(s, v2, "east") },
			want: parts(map[string]delivery.Part{"primary": {Revision: v2, Traffic: 100}}),
		},
		"a new revision takes the place of the primary": {
			set: running, edit: func(s delivery.Set) delivery.Set { return Roll(s, v2, "east") },
			want: parts(map[string]delivery.Part{"primary": {Revision: v2, Traffic: 100}}),
		},
		"a new primary keeps its share beside a canary": {
			set: split, edit: func(s delivery.Set) delivery.Set { return Roll(s, v2, "east") },
			want: parts(map[string]delivery.Part{"primary": {Revision: v2, Traffic: 90}, "canary": {Revision: v2, Replicas: two, Traffic: 10, Routed: true}}),
		},
		"a canary begins without traffic": {
			set: running, edit: func(s delivery.Set) delivery.Set { return Add(s, delivery.Canary, canary, v2, "east", two) },
			want: parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 100}, "canary": {Revision: v2, Replicas: two}}),
		},
		"a canary that grows keeps its share": {
			set: split, edit: func(s delivery.Set) delivery.Set {
				return Add(s, delivery.Canary, canary, v2, "east", map[string]int32{"Deployment/web": 5})
			},
			want: parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 90}, "canary": {Revision: v2, Replicas: map[string]int32{"Deployment/web": 5}, Traffic: 10, Routed: true}}),
		},
		"shares are set": {
			set: split, edit: func(s delivery.Set) delivery.Set {
				return Route(s, "east", map[string]int32{"primary": 30, "canary": 70})
			},
			want: parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 30, Routed: true}, "canary": {Revision: v2, Replicas: two, Traffic: 70, Routed: true}}),
		},
		"the primary gets what nobody is named for": {
			set: split, edit: func(s delivery.Set) delivery.Set { return Route(s, "east", map[string]int32{"canary": 20}) },
			want: parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 80}, "canary": {Revision: v2, Replicas: two, Traffic: 20, Routed: true}}),
		},
		"a share of what is not there goes to the primary": {
			set: running, edit: func(s delivery.Set) delivery.Set {
				return Route(s, "east", map[string]int32{"primary": 80, "canary": 20})
			},
			want: parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 100, Routed: true}}),
		},
		"a share that was lost is remembered, so that it drains": {
			set: split, edit: func(s delivery.Set) delivery.Set { return Route(s, "east", map[string]int32{"primary": 100}) },
			want: parts(map[string]delivery.Part{"primary": {Revision: v1, Traffic: 100, Routed: true}, "canary": {Revision: v2, Replicas: two, Routed: true}}),
		},
		"what a canary had goes back when it is cleaned": {
			set: split, edit: func(s delivery.Set) delivery.Set { return Clean(s, "canary", "east") }, want: running,
		},
		"what is not there is cleaned all the same": {
			set: running, edit: func(s delivery.Set) delivery.Set { return Clean(s, "canary", "east") }, want: running,
		},
		"what was recorded comes back": {
			set: split, edit: func(s delivery.Set) delivery.Set { return Restore(s, running, "east") }, want: running,
		},
		"and a variant that was recorded too": {
			set: running, edit: func(s delivery.Set) delivery.Set { return Restore(s, split, "east") }, want: split,
		},
		"a cluster that was not there before is emptied": {
			set: split, edit: func(s delivery.Set) delivery.Set { return Restore(s, delivery.Set{}, "east") }, want: delivery.Set{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.set.Clone()
			got := test.edit(test.set)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !test.set.Equal(before) {
				t.Error("the edit has changed its argument")
			}
			if again := test.edit(got); !again.Equal(got) {
				t.Errorf("made again, the edit goes on: %v", again)
			}
		})
	}
}

// However a set is edited, the shares of every cluster that runs anything add up to 100, none is negative, and other clusters stay as they are.
func TestRandomEditsConserveTheTraffic(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		set, recorded := delivery.Set{}, delivery.Set{}
		for range 12 {
			cluster, name := []string{"east", "west"}[r.IntN(2)], []string{delivery.Canary, delivery.Baseline}[r.IntN(2)]
			before := set
			switch r.IntN(6) {
			case 0:
				set = Roll(set, []delivery.Revision{v1, v2}[r.IntN(2)], cluster)
			case 1:
				set = Add(set, name, delivery.Variant{Suffix: name}, v2, cluster, map[string]int32{"Deployment/web": r.Int32N(4)})
			case 2:
				set = Route(set, cluster, map[string]int32{delivery.Primary: r.Int32N(120), name: r.Int32N(120) - 10})
			case 3:
				set = Clean(set, name, cluster)
			case 4:
				set = Restore(set, recorded, cluster)
			case 5:
				recorded = set
			}
			for _, of := range set.Clusters() {
				total := int32(0)
				for variant, share := range set.Shares(of) {
					if total += share; share < 0 {
						t.Fatalf("seed %d: the share of %s is %d", seed, variant, share)
					}
				}
				if total != 100 {
					t.Fatalf("seed %d: the shares of %s add up to %d: %v", seed, of, total, set)
				}
				if of != cluster && set.Differs(before, of) {
					t.Fatalf("seed %d: an edit for %s has changed %s", seed, cluster, of)
				}
			}
		}
	}
}
