package move

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestStepHoldsBack(t *testing.T) {
	for name, test := range map[string]struct {
		decision placement.Decision
		observed map[string]Observed
		want     placement.Decision
	}{
		"a new workload is not held": {
			decision: placement.Decision{"east": {Replicas: 2}, "west": {Replicas: 1}},
			want:     placement.Decision{"east": {Replicas: 2}, "west": {Replicas: 1}},
		},
		"a share that leaves stays until its replacement serves": {
			decision: placement.Decision{"west": {Replicas: 3}},
			observed: map[string]Observed{"east": {Replicas: 3, Available: 3}, "west": {Replicas: 3}},
			want:     placement.Decision{"east": {Replicas: 3}, "west": {Replicas: 3}},
		},
		"it shrinks by as many replicas as serve elsewhere": {
			decision: placement.Decision{"west": {Replicas: 3}},
			observed: map[string]Observed{"east": {Replicas: 3, Available: 3}, "west": {Replicas: 3, Available: 2}},
			want:     placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 3}},
		},
		"it leaves when all are replaced": {
			decision: placement.Decision{"west": {Replicas: 3}},
			observed: map[string]Observed{"east": {Replicas: 3, Available: 3}, "west": {Replicas: 3, Available: 3}},
			want:     placement.Decision{"west": {Replicas: 3}},
		},
		"scaling down is not held": {
			decision: placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 1}},
			observed: map[string]Observed{"east": {Replicas: 3, Available: 3}, "west": {Replicas: 3, Available: 3}},
			want:     placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 1}},
		},
		"replicas that do not serve are not worth keeping": {
			decision: placement.Decision{"east": {Replicas: 1}},
			observed: map[string]Observed{"east": {Replicas: 6}},
			want:     placement.Decision{"east": {Replicas: 1}},
		},
		"scaling to zero empties at once": {
			decision: placement.Decision{"east": {Replicas: 0}},
			observed: map[string]Observed{"east": {Replicas: 3, Available: 3}, "west": {Replicas: 2, Available: 2}},
			want:     placement.Decision{"east": {Replicas: 0}},
		},
		"replicas that are on their way out do not count as serving": {
			decision: placement.Decision{"south": {Replicas: 4}},
			observed: map[string]Observed{"east": {Replicas: 1, Available: 3}, "south": {Replicas: 4, Available: 2}, "west": {Replicas: 2, Available: 2}},
			want:     placement.Decision{"south": {Replicas: 4}, "west": {Replicas: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Step(test.decision, test.observed, Bounds{Surge: placement.Unbounded})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}
