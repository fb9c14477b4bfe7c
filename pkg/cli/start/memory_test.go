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
		"a server at rest":    {200 << 20, busyGCPercent},
		"some ten thousands":  {768 << 20, 66},
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
