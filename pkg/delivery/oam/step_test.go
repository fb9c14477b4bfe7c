package oam

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func in(cluster string, replicas int32) Size {
	return Size{cluster: {"Deployment/web": replicas}}
}

type sizes = map[string]Size

func TestK21TheDifferenceIsWhatComesChangesAndGoes(t *testing.T) {
	ordered := sizes{"v1": in("east", 5), "v2": in("east", 5), "v3": in("east", 5), "v4": in("east", 1)}
	got := Compare(ordered, sizes{"v2": in("east", 5), "v3": in("west", 5), "v5": in("east", 1)}, map[string]bool{"v4": true})
	if !slices.Equal(got.Add, []string{"v5"}) || !slices.Equal(got.Mod, []string{"v3"}) || !slices.Equal(got.Del, []string{"v1"}) {
		t.Errorf("%+v", got)
	}
}

func TestTheOrderKeepsCapacity(t *testing.T) {
	lacks := func(of ...string) func(string) string {
		return func(variant string) string {
			if slices.Contains(of, variant) {
				return "1 of 5 pods are ready"
			}
			return ""
		}
	}
	for name, test := range map[string]struct {
		in     Situation
		want   sizes
		remove []string
		again  time.Duration
		waits  string
		since  time.Time
	}{
		"K23 what is added is deployed, and nothing goes yet": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5)}},
			want: sizes{"v2": in("east", 5)}, waits: "v2 is about to be applied",
		},
		"K26 until it is ready": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5), "v2": in("east", 5)}, Lacking: lacks("v2")},
			want: sizes{"v2": in("east", 5)}, waits: "v2: 1 of 5 pods are ready",
		},
		"K26 and gets the requests": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5), "v2": in("east", 5)}, Unrouted: "not taken up yet"},
			want: sizes{"v2": in("east", 5)}, waits: "not taken up yet",
		},
		"then what goes is drained": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5), "v2": in("east", 5)}, Drain: time.Minute},
			want: sizes{"v2": in("east", 5)}, again: time.Minute, waits: "drained", since: now,
		},
		"for as long as is said": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5), "v2": in("east", 5)}, Drain: time.Minute, Since: now.Add(-50 * time.Second)},
			want: sizes{"v2": in("east", 5)}, again: 10 * time.Second, waits: "drained", since: now.Add(-50 * time.Second),
		},
		"K22 and goes": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5), "v2": in("east", 5)}, Drain: time.Minute, Since: now.Add(-time.Minute)},
			want: sizes{"v2": in("east", 5)}, remove: []string{"v1"}, since: now.Add(-time.Minute),
		},
		"a drain begins anew if what serves is no longer ready": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5), "v2": in("east", 5)}, Lacking: lacks("v2"), Drain: time.Minute, Since: now.Add(-time.Minute)},
			want: sizes{"v2": in("east", 5)}, waits: "v2: 1 of 5",
		},
		"K24 what grows does so at once, and what is to be smaller waits for it": {
			in:   Situation{Wanted: sizes{"v1": in("east", 2), "v2": in("east", 8)}, Ordered: sizes{"v1": in("east", 8), "v2": in("east", 2)}},
			want: sizes{"v1": in("east", 8), "v2": in("east", 8)}, waits: "v2 is about to be applied",
		},
		"K24 and is smaller then, without a drain": {
			in:   Situation{Wanted: sizes{"v1": in("east", 2), "v2": in("east", 8)}, Ordered: sizes{"v1": in("east", 8), "v2": in("east", 8)}, Drain: time.Minute},
			want: sizes{"v1": in("east", 2), "v2": in("east", 8)},
		},
		"a revision that moves is in both clusters first": {
			in:   Situation{Wanted: sizes{"v1": in("west", 5)}, Ordered: sizes{"v1": in("east", 5)}},
			want: sizes{"v1": {"east": {"Deployment/web": 5}, "west": {"Deployment/web": 5}}}, waits: "v1 is about to be applied",
		},
		"K25 nothing to do": {
			in:   Situation{Wanted: sizes{"v1": in("east", 5)}, Ordered: sizes{"v1": in("east", 5)}, Since: now},
			want: sizes{"v1": in("east", 5)},
		},
		"K10 while a revision is not known, nothing goes": {
			in:   Situation{Wanted: sizes{"v2": in("east", 5)}, Ordered: sizes{"v1": in("east", 5), "v2": in("east", 5), "v3": in("east", 1)}, Kept: map[string]bool{"v3": true}},
			want: sizes{"v2": in("east", 5)}, waits: "v3 is not known",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Now = now
			if test.in.Lacking == nil {
				test.in.Lacking = lacks()
			}
			got := Next(test.in)
			for variant, want := range test.want {
				if !got.Sizes[variant].Equal(want) {
					t.Errorf("%s is %v, want %v", variant, got.Sizes[variant], want)
				}
			}
			if len(got.Sizes) != len(test.want) || !slices.Equal(got.Remove, test.remove) || got.Again != test.again || !got.Since.Equal(test.since) ||
				(test.waits == "") != (got.Waits == "") || !strings.Contains(got.Waits, test.waits) {
				t.Errorf("%+v, want %+v", got, test)
			}
		})
	}
}

// Whatever is asked for one after the other, at every moment as much is ready as is wanted or was before, whichever is less.
func TestNothingGoesBeforeWhatTakesItsPlaceIsReady(t *testing.T) {
	ordered, running := sizes{}, sizes{}
	total := func(of sizes) int32 {
		sum := int32(0)
		for _, size := range of {
			sum += size.Sum()
		}
		return sum
	}
	for i, wanted := range []sizes{
		{"v1": in("east", 6)},
		{"v1": in("east", 3), "v2": in("west", 3)},
		{"v2": in("west", 6)},
		{"v2": in("east", 6)},
		{"v3": {"east": {"Deployment/web": 3}, "west": {"Deployment/web": 3}}},
	} {
		least := min(total(running), total(wanted))
		for range 10 {
			step := Next(Situation{Wanted: wanted, Ordered: ordered, Now: now, Lacking: func(variant string) string {
				if running[variant].Covers(wanted[variant]) {
					return ""
				}
				return "not ready"
			}})
			next := sizes{}
			for variant, size := range step.Sizes {
				next[variant] = size
			}
			for variant, size := range ordered {
				if slices.Contains(step.Diff.Del, variant) && !slices.Contains(step.Remove, variant) {
					next[variant] = size
				}
			}
			for variant := range running { // what is told to go goes at once, and what is to come takes a step
				if kept, stays := next[variant]; !stays {
					delete(running, variant)
				} else if running[variant].Covers(kept) {
					running[variant] = kept
				}
			}
			if total(running) < least {
				t.Fatalf("step %d: %d run, and %d did or are wanted: %v", i, total(running), least, running)
			}
			ordered = next
			for variant, size := range next {
				running[variant] = size
			}
		}
		for variant, size := range wanted {
			if !running[variant].Equal(size) || len(running) != len(wanted) {
				t.Fatalf("step %d ends with %v, want %v", i, running, wanted)
			}
		}
	}
}
