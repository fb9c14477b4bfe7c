package placement

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// job is what a policy divides that lists its kind.
func job(replicas int32) *requestBuilder {
	b := deployment(replicas)
	b.Workload.GVK.Group, b.Workload.GVK.Kind = "batch", "Job"
	b.Workload.Division = DivisibleByName
	return b
}

func (b *requestBuilder) fixed() *requestBuilder {
	b.Workload.Fixed = true
	return b
}

// whole gives a reason not to be divided.
func (b *requestBuilder) whole(why string) *requestBuilder {
	b.Workload.Division, b.Workload.Whole = Indivisible, why
	return b
}

// copied marks all shares of a decision as whole.
func copied(d Decision) Decision {
	for name, share := range d {
		share.Copy = true
		d[name] = share
	}
	return d
}

func TestPlaceWhatIsOnlyDividedByName(t *testing.T) {
	two := []*clusterBuilder{cluster("east", 9), cluster("west", 19)}
	testPlace(t, map[string]placeCase{
		"a pin to several clusters chooses one": {
			clusters: two, request: job(4).pinned("east", "west"), want: shares("west", 4),
		},
		"a policy that does not list the kind does not divide it": {
			clusters: two, request: job(4).dividedBy(v1alpha1.ByEven), want: shares("west", 4),
		},
		"one that lists the kind does": {
			clusters: two, request: job(4).dividedBy(v1alpha1.ByEven).byName(), want: shares("east", 2, "west", 2),
		},
		"copies are marked": {
			clusters: two, request: job(4).duplicated().byName(), want: copied(shares("east", 4, "west", 4)),
		},
		"one that is whole says why": {
			clusters: two, request: job(4).dividedBy(v1alpha1.ByEven).byName().whole("its parts are one"), want: shares("west", 4),
			message: "placed on west; it is not divided: its parts are one",
		},
		"one that is whole says nothing where nobody asks": {
			clusters: two, request: job(4).dividedBy(v1alpha1.ByEven).whole("its parts are one"), want: shares("west", 4),
			message: "placed on west",
		},
	})
}

func TestPlaceWhatHasStarted(t *testing.T) {
	two := []*clusterBuilder{cluster("east", 9), cluster("west", 19)}
	testPlace(t, map[string]placeCase{
		"it stays, whatever number is asked for now": {
			clusters: two, request: job(8).dividedBy(v1alpha1.ByEven).byName().fixed().on(shares("east", 3, "west", 1)),
			want: shares("east", 3, "west", 1),
		},
		"copies stay marked": {
			clusters: two, request: job(8).duplicated().byName().fixed().on(copied(shares("east", 4, "west", 4))),
			want: copied(shares("east", 4, "west", 4)),
		},
		"it stays in a cluster that is being left, until it ends": {
			clusters: two, request: job(4).fixed().on(shares("east", 4)).leaving("east"), want: shares("east", 4),
			message: "placed on east; staying where it was started: 4 on east",
		},
		"another pin does not move it": {
			clusters: two, request: job(4).fixed().on(shares("east", 4)).pinned("west"), want: shares("east", 4),
			message: "placed on east; staying where it was started: 4 on east",
		},
		"it is placed if it was not": {
			clusters: two, request: job(4).fixed(), want: shares("west", 4),
		},
		"it is placed again when its cluster is gone": {
			clusters: two, request: job(4).fixed().on(shares("north", 4)), want: shares("west", 4),
		},
	})
}
