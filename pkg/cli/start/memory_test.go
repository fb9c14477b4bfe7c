package start

import "testing"

func TestALargeHeapIsCollectedMoreOften(t *testing.T) {
	for name, test := range map[string]struct {
		live uint64
		want int
	}{
		"nothing yet":         {0, busyGCPercent},
		"a server at rest":    {200 << 20, busyGCPercent},
		"some ten thousands":  {1 << 30, 75},
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
