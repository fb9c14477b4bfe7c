package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestPlaceWhatIsOnlyDividedByName(t *testing.T) {
	two := []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 19)}
	testPlace(t, map[string]placeCase{
		"a pin to several clusters chooses one": {
			clusters: two, request: build.Job(4).Pinned("east", "west"), want: build.Shares("west", 4),
		},
		"a policy that does not list the kind does not divide it": {
			clusters: two, request: build.Job(4).DividedBy(v1alpha1.ByEven), want: build.Shares("west", 4),
		},
		"one that lists the kind does": {
			clusters: two, request: build.Job(4).DividedBy(v1alpha1.ByEven).ByName(), want: build.Shares("east", 2, "west", 2),
		},
		"copies are marked": {
			clusters: two, request: build.Job(4).Duplicated().ByName(), want: build.Copied(build.Shares("east", 4, "west", 4)),
		},
		"one that is whole says why": {
			clusters: two, request: build.Job(4).DividedBy(v1alpha1.ByEven).ByName().Whole("its parts are one"), want: build.Shares("west", 4),
			message: "placed on west; it is not divided: its parts are one",
		},
		"one that is whole says nothing where nobody asks": {
			clusters: two, request: build.Job(4).DividedBy(v1alpha1.ByEven).Whole("its parts are one"), want: build.Shares("west", 4),
			message: "placed on west",
		},
	})
}

func TestPlaceWhatHasStarted(t *testing.T) {
	two := []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 19)}
	testPlace(t, map[string]placeCase{
		"it stays, whatever number is asked for now": {
			clusters: two, request: build.Job(8).DividedBy(v1alpha1.ByEven).ByName().Fixed().On(build.Shares("east", 3, "west", 1)),
			want: build.Shares("east", 3, "west", 1),
		},
		"copies stay marked": {
			clusters: two, request: build.Job(8).Duplicated().ByName().Fixed().On(build.Copied(build.Shares("east", 4, "west", 4))),
			want: build.Copied(build.Shares("east", 4, "west", 4)),
		},
		"it stays in a cluster that is being left, until it ends": {
			clusters: two, request: build.Job(4).Fixed().On(build.Shares("east", 4)).Leaving("east"), want: build.Shares("east", 4),
			message: "placed on east; staying where it was started: 4 on east",
		},
		"another pin does not move it": {
			clusters: two, request: build.Job(4).Fixed().On(build.Shares("east", 4)).Pinned("west"), want: build.Shares("east", 4),
			message: "placed on east; staying where it was started: 4 on east",
		},
		"it is placed if it was not": {
			clusters: two, request: build.Job(4).Fixed(), want: build.Shares("west", 4),
		},
		"it is placed again when its cluster is gone": {
			clusters: two, request: build.Job(4).Fixed().On(build.Shares("north", 4)), want: build.Shares("west", 4),
		},
	})
}
