package moves

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// settle has everything of a cluster happen that is on its way, but for what its syncer does.
func (s *side) settle() {
	for range 6 {
		s.deploy()
		s.replicate()
		s.start()
	}
	s.shown = len(s.stored) - 1
}

// begun is a move of four replicas from east to north, the first of which is ready there.
func begun(t *testing.T) (w *world, east, north *side) {
	t.Helper()
	w = newWorld(rand.New(rand.NewPCG(1, 1)), 4, &v1alpha1.Move{MaxSurge: ptr.To(intstr.FromInt32(1))})
	east, north = w.sides[0], w.sides[1]
	w.decide("north", 4)
	north.looks(w)
	north.write()
	north.settle()
	north.looks(w) // and finds that its write has been shown
	if got := w.String(); got != "east: 4 asked, 4 shown, 4 ready, 0 starting; north: 1 asked, 1 shown, 1 ready, 0 starting; west: gone asked, gone shown, 0 ready, 0 starting" {
		t.Fatal(got)
	}
	return w, east, north
}

func (s *side) looks(w *world) {
	s.look(w.above) // reads
	s.look(w.above) // decides
}

func TestATurnedMoveCountsOnNothingThatIsBeingGivenUp(t *testing.T) {
	w, east, north := begun(t)
	east.looks(w) // gives up one, and has not written it yet
	w.decide("east", 4)
	north.looks(w)
	if north.writes {
		t.Error("north gives up its replica in favour of one that east has just given up")
	}
	east.write()
	north.looks(w)
	if north.writes {
		t.Error("and so it does while the watch does not show what was written")
	}
}

func TestATurnedMoveCountsOnNothingThatControllersMayBeEnding(t *testing.T) {
	for name, test := range map[string]struct {
		seen bool // by the controller of Deployments, that the replica is to stay
	}{
		"of the Deployment, which has not seen what it asks for now": {},
		"of its ReplicaSet, which has not seen what that asks for":   {seen: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, east, north := begun(t)
			east.looks(w)
			east.write() // it gives up a replica
			east.shown = len(east.stored) - 1
			east.deploy()
			east.replicate()
			w.decide("east", 4)
			east.looks(w)
			east.write() // and is to have it again
			if test.seen {
				east.deploy()
			}
			east.shown = len(east.stored) - 1
			east.looks(w)
			north.looks(w)
			if north.writes {
				t.Error("north gives up its replica in favour of one that may end")
			}
			if east.replicate(); w.ready() != 4 {
				t.Errorf("%s: want one in east to have ended", w)
			}
			east.settle()
			if north.looks(w); !north.writes {
				t.Errorf("north keeps its replica although all are ready in east: %s", w)
			}
		})
	}
}
