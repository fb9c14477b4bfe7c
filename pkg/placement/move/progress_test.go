package move

import (
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestProgress(t *testing.T) {
	all := func(replicas int32) Observed { return Observed{Replicas: replicas, Available: replicas} }
	for name, test := range map[string]struct {
		decision placement.Decision
		observed map[string]Observed
		want     string
	}{
		"what is where it should be does not move": {decision: build.Shares("west", 4), observed: map[string]Observed{"west": all(4)}},
		"it has only just been decided": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": all(4)}, want: "4 to leave east, 0 of 4 available in west",
		},
		"it is half-way": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": all(3), "west": {Replicas: 2, Available: 1}},
			want: "3 to leave east, 1 of 4 available in west",
		},
		"only the last is to go": {
			decision: build.Shares("west", 4), observed: map[string]Observed{"east": all(1), "west": all(4)}, want: "1 to leave east, 4 of 4 available in west",
		},
		"a share shrinks in favour of another": {
			decision: build.Shares("east", 2, "west", 2), observed: map[string]Observed{"east": all(4)},
			want: "2 of 2 available in east, 2 to leave east, 0 of 2 available in west",
		},
		"a scale down is no move":      {decision: build.Shares("east", 2, "west", 2), observed: map[string]Observed{"east": all(4), "west": all(2)}},
		"nor is a scale up":            {decision: build.Shares("east", 4), observed: map[string]Observed{"east": {Replicas: 2, Available: 1}}},
		"nor is a scale down to none":  {decision: build.Shares("east", 0), observed: map[string]Observed{"east": all(2), "west": all(2)}},
		"nor is what is made anew":     {decision: build.Shares("east", 4), observed: map[string]Observed{}},
		"nor is what has no decision":  {observed: map[string]Observed{"east": all(4)}},
		"a silent cluster is not left": {decision: build.Shares("west", 4), observed: map[string]Observed{"east": {Replicas: 4, Available: 4, Silent: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Progress(test.decision, test.observed); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
