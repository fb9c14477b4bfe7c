package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

func TestWhatStartsOverLeavesWhatIsLostOrDrainedByForce(t *testing.T) {
	job := build.StatefulSet(1).Workload
	job.GVK.Kind, job.Fixed = "Job", true
	both := build.Snapshot(build.Cluster("east", 4), build.Cluster("west", 4))
	for name, test := range map[string]struct {
		restarts     bool
		lost, forced bool
		current      placement.Decision
		want         placement.Decision
	}{
		"a drain leaves it alone":             {restarts: true, current: build.Shares("east", 1), want: build.Shares("east", 1)},
		"a drain by force does not":           {restarts: true, forced: true, current: build.Shares("east", 1), want: build.Shares("west", 1)},
		"nor does the loss of its cluster":    {restarts: true, lost: true, current: build.Shares("east", 1), want: build.Shares("west", 1)},
		"what cannot start over stays":        {lost: true, current: build.Shares("east", 1), want: build.Shares("east", 1)},
		"and so does what has begun in parts": {restarts: true, lost: true, current: build.Shares("east", 1, "west", 1), want: build.Shares("east", 1, "west", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			w, here := job, map[string]bool{"east": true}
			w.Restarts = test.restarts
			r := placement.Request{Workload: w, Current: test.current, Evict: here}
			if test.lost {
				r.Lost = here
			}
			if test.forced {
				r.Forced = here
			}
			if got := decide.Place(both, r); !got.Decision.Equal(test.want) {
				t.Errorf("got %v, want %v: %s", got.Decision, test.want, got.Message())
			}
		})
	}
}

func TestDepartureAndObstacle(t *testing.T) {
	r := build.Deployment(2).Request
	r.Current, r.Evict = build.Shares("east", 2), map[string]bool{"east": true}
	moved := decide.Place(build.Snapshot(build.Cluster("east", 4), build.Cluster("west", 4)), r)
	if got, want := moved.Departure(r.Current), `; moved off cluster "east", which is being emptied`; got != want {
		t.Errorf("departure %q, want %q", got, want)
	}
	if got := moved.Departure(moved.Decision); got != "" {
		t.Errorf("nothing has moved, but %q", got)
	}
	stuck := decide.Place(build.Snapshot(build.Cluster("east", 4), build.Cluster("west", 4).Cordoned()), r)
	if got, want := stuck.Obstacle("east"), "1 is cordoned"; got != want {
		t.Errorf("obstacle %q, want %q", got, want)
	}
	if got, want := decide.Place(build.Snapshot(build.Cluster("east", 4)), r).Obstacle("east"), "there is no other cluster"; got != want {
		t.Errorf("obstacle %q, want %q", got, want)
	}
}
