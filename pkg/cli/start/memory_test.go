package start

import (
	"runtime"
	"testing"
)

func TestALargeHeapIsCollectedMoreOften(t *testing.T) {
	for name, test := range map[string]struct {
		live uint64
		want int
	}{
		"nothing yet":         {0, busyGCPercent},
		"a server at rest":    {90 << 20, busyGCPercent},
		"a burst of work":     {120 << 20, 160},
		"a storm of kinds":    {300 << 20, 64},
		"some ten thousands":  {768 << 20, fullGCPercent},
		"more than is usual":  {4 << 30, fullGCPercent},
		"as much as there is": {1 << 62, fullGCPercent},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gcPercent(test.live); got != test.want {
				t.Errorf("%d%% of %d MiB, want %d%%", got, test.live>>20, test.want)
			}
		})
	}
}

func TestALargeHeapAtRestIsCollectedLessOften(t *testing.T) {
	for name, test := range map[string]struct{ live, want uint64 }{
		"little":               {1, worthwhile},
		"a server that rests":  {100 << 20, worthwhile},
		"thousands of objects": {400 << 20, 100 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if got := worthCollecting(test.live); got != test.want {
				t.Errorf("collected after %d MiB, want %d MiB", got>>20, test.want>>20)
			}
		})
	}
}

func TestMemoryIsGivenBackWhenThereIsGarbageAndLittleToDo(t *testing.T) {
	const small, busy = 1 << 20, 64 << 20
	type look struct {
		allocates  uint64
		goroutines int
		want       bool
	}
	for name, all := range map[string][]look{
		"a process that rests":                         {{small, 300, false}, {small, 310, false}, {small, 300, false}},
		"after work":                                   {{busy, 300, false}, {busy, 300, false}, {small, 300, true}, {small, 300, false}},
		"while there is work":                          {{busy, 5000, false}, {busy, 300, false}},
		"what goroutines held that ended later":        {{busy, 5000, false}, {small, 5000, true}, {small, 4000, true}, {small, 3900, false}, {small, 300, true}, {small, 300, false}},
		"goroutines that end one after another":        {{small, 800, false}, {small, 600, false}, {small, 301, false}, {small, 300, true}, {small, 200, false}},
		"goroutines that come and go":                  {{small, 300, false}, {small, 700, false}, {small, 300, false}, {small, 700, false}},
		"little by little, once it is worth its time":  {{30 << 20, 300, false}, {3 << 20, 300, true}, {30 << 20, 300, false}},
		"goroutines that ended while there was work":   {{busy, 5000, false}, {small, 4900, true}, {busy, 300, false}, {small, 300, true}},
		"goroutines and then nothing else for a while": {{small, 900, false}, {small, 300, true}, {small, 300, false}, {small, 300, false}},
		"goroutines of a second storm after the first": {{small, 900, false}, {small, 300, true}, {small, 900, false}, {small, 300, true}},
	} {
		t.Run(name, func(t *testing.T) {
			seen, allocated := looks{}, uint64(0)
			for i, look := range all {
				allocated += look.allocates
				if got := seen.collect(allocated, 100<<20, look.goroutines); got != look.want {
					t.Errorf("look %d gives back: %t, want %t", i, got, look.want)
				}
			}
		})
	}
}

func TestCollectionsAreFollowed(t *testing.T) {
	followed := make(chan struct{}, 1)
	afterCollections(t.Context(), func() { followed <- struct{}{} })
	for range 3 {
		for len(followed) == 0 { // one that comes while the one before is still being told of is left out
			runtime.GC()
		}
		<-followed
	}
}
