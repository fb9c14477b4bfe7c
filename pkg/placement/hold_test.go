package placement

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHold(t *testing.T) {
	for name, test := range map[string]struct {
		decision Decision
		observed map[string]Observed
		want     Decision
	}{
		"a new workload is not held": {
			decision: Decision{"east": {Replicas: 2}, "west": {Replicas: 1}},
			want:     Decision{"east": {Replicas: 2}, "west": {Replicas: 1}},
		},
		"a share that leaves stays until its replacement serves": {
			decision: Decision{"west": {Replicas: 3}},
			observed: map[string]Observed{"east": {3, 3}, "west": {3, 0}},
			want:     Decision{"east": {Replicas: 3}, "west": {Replicas: 3}},
		},
		"it shrinks by as many replicas as serve elsewhere": {
			decision: Decision{"west": {Replicas: 3}},
			observed: map[string]Observed{"east": {3, 3}, "west": {3, 2}},
			want:     Decision{"east": {Replicas: 1}, "west": {Replicas: 3}},
		},
		"it leaves when all are replaced": {
			decision: Decision{"west": {Replicas: 3}},
			observed: map[string]Observed{"east": {3, 3}, "west": {3, 3}},
			want:     Decision{"west": {Replicas: 3}},
		},
		"scaling down is not held": {
			decision: Decision{"east": {Replicas: 1}, "west": {Replicas: 1}},
			observed: map[string]Observed{"east": {3, 3}, "west": {3, 3}},
			want:     Decision{"east": {Replicas: 1}, "west": {Replicas: 1}},
		},
		"replicas that do not serve are not worth keeping": {
			decision: Decision{"east": {Replicas: 1}},
			observed: map[string]Observed{"east": {6, 0}},
			want:     Decision{"east": {Replicas: 1}},
		},
		"scaling to zero empties at once": {
			decision: Decision{"east": {Replicas: 0}},
			observed: map[string]Observed{"east": {3, 3}, "west": {2, 2}},
			want:     Decision{"east": {Replicas: 0}},
		},
		"replicas that are on their way out do not count as serving": {
			decision: Decision{"south": {Replicas: 4}},
			observed: map[string]Observed{"east": {1, 3}, "south": {4, 2}, "west": {2, 2}},
			want:     Decision{"south": {Replicas: 4}, "west": {Replicas: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Hold(test.decision, test.observed)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}

// A move, simulated: whatever becomes available in whatever order, the number of serving replicas never falls below what is wanted, and
// the move ends at the decision once everything serves.
func TestHoldNeverDipsAndArrives(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	clusters := []string{"a", "b", "c", "d"}
	for range 2000 {
		total := int32(random.Intn(12))
		now := map[string]Observed{}
		decision := Decision{}
		for range total {
			from, to := clusters[random.Intn(4)], clusters[random.Intn(4)]
			o := now[from]
			now[from] = Observed{o.Replicas + 1, o.Available + 1}
			decision[to] = Share{Replicas: decision[to].Replicas + 1}
		}
		for step := 0; ; step++ {
			if step > 200 {
				t.Fatalf("does not arrive at %v, is at %v", decision, now)
			}
			held := Hold(decision, now)
			next := map[string]Observed{}
			var serving int32
			for _, c := range clusters {
				replicas := held[c].Replicas
				available := min(now[c].Available, replicas)
				if available < replicas && random.Intn(2) == 0 {
					available++
				}
				if replicas > 0 {
					next[c] = Observed{replicas, available}
				}
				serving += available
			}
			if serving < total {
				t.Fatalf("%d of %d replicas serve on the way from %v to %v", serving, total, now, decision)
			}
			now = next
			if arrived(decision, now) {
				break
			}
		}
	}
}

func arrived(decision Decision, now map[string]Observed) bool {
	for c, share := range decision {
		if now[c].Available != share.Replicas {
			return false
		}
	}
	for c, o := range now {
		if o.Replicas != decision[c].Replicas {
			return false
		}
	}
	return true
}
