package decide_test

import (
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

func TestFailuresCountForLongerEachTime(t *testing.T) {
	clusters := build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 9))
	for name, test := range map[string]struct {
		before placement.Failures
		want   placement.Failures
	}{
		"the first time": {want: placement.Failures{"east": {Until: build.Noon.Add(10 * time.Minute), Times: 1}}},
		"again, soon after": {
			before: placement.Failures{"east": {Until: build.Noon.Add(-time.Minute), Times: 1}},
			want:   placement.Failures{"east": {Until: build.Noon.Add(20 * time.Minute), Times: 2}},
		},
		"more pods of the same time": {
			before: placement.Failures{"east": {Until: build.Noon.Add(time.Minute), Times: 1}},
			want:   placement.Failures{"east": {Until: build.Noon.Add(10 * time.Minute), Times: 1}},
		},
		"again and again": {
			before: placement.Failures{"east": {Until: build.Noon.Add(-time.Minute), Times: 40}},
			want:   placement.Failures{"east": {Until: build.Noon.Add(640 * time.Minute), Times: 41}},
		},
		"long after another": {
			before: placement.Failures{"east": {Until: build.Noon.Add(-10 * time.Minute), Times: 1}},
			want:   placement.Failures{"east": {Until: build.Noon.Add(10 * time.Minute), Times: 1}},
		},
		"what another cluster failed at is kept": {
			before: placement.Failures{"north": {Until: build.Noon.Add(time.Minute), Times: 3}},
			want:   placement.Failures{"north": {Until: build.Noon.Add(time.Minute), Times: 3}, "east": {Until: build.Noon.Add(10 * time.Minute), Times: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := build.Deployment(2).Pinned("east", "west").On(build.Shares("east", 2)).StuckOn("east", 1)
			r.Workload.Failures = test.before
			if got := decide.Place(clusters, r.Request).Failures; !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
