package placement_test

import (
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestCauseOf(t *testing.T) {
	for says, want := range map[string]placement.Cause{
		"0/3 nodes are available: 3 Insufficient cpu":                                              placement.CauseNoRoom,
		"0/3 nodes are available: 3 Too many pods. preemption: not eligible":                       placement.CauseNoRoom,
		"0/3 nodes are available: 3 node(s) had untolerated taint. preemption: 3 Insufficient cpu": placement.CauseOther,
		`0/3 nodes are available: persistentvolumeclaim "data" not found. not found`:               placement.CauseNoClaim,
		build.SelectsNone: placement.CauseOther,
		"":                placement.CauseOther,
	} {
		if got := placement.CauseOf(says); got != want {
			t.Errorf("%q: cause %q, want %q", says, got, want)
		}
	}
}
