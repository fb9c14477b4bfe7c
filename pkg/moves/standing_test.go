package moves

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Who looks is told what the clusters will be told, and changes nothing by looking.
func TestStandingIsWhatNextSays(t *testing.T) {
	held := 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(random, 1+random.Int32N(5), nil)
		for range 300 {
			if random.IntN(20) == 0 {
				w.decide(w.sides[random.IntN(len(w.sides))].name, 1+random.Int32N(5))
			}
			w.happen()
			before := reserved(w.fleets)
			got := w.fleets.Standing(w.above)
			if diff := cmp.Diff(before, reserved(w.fleets)); diff != "" {
				t.Fatalf("seed %d: looking reserves (-before +after):\n%s", seed, diff)
			}
			if diff := cmp.Diff(got, w.fleets.Standing(w.above)); diff != "" {
				t.Fatalf("seed %d: the second look shows something else:\n%s", seed, diff)
			}
			side := w.sides[random.IntN(len(w.sides))].name
			if _, has := w.fleets.Reserved(w.above.Key(), side); has {
				continue
			}
			want := w.fleets.Next(w.above, side)
			w.fleets.Forgo(w.above.Key(), side)
			if want.Held {
				held++
			}
			if diff := cmp.Diff(want, got.Steps[side]); diff != "" {
				t.Fatalf("seed %d: %s is shown another step (-want +got):\n%s", seed, side, diff)
			}
		}
	}
	if held == 0 {
		t.Error("no cluster is ever held back, so nothing is compared")
	}
}

func reserved(f *Fleets) map[identity.Key]map[string]string {
	out := map[identity.Key]map[string]string{}
	for i := range f.reservations {
		for key, by := range f.reservations[i].byKey {
			out[key] = map[string]string{}
			for cluster, r := range by {
				out[key][cluster] = r.hash
			}
		}
	}
	return out
}

// idle is a cluster that is connected and has nothing of any workload.
type idle struct{ name string }

func (c idle) Cluster() string                               { return c.name }
func (idle) HasSynced() bool                                 { return true }
func (idle) Holding(identity.Workload, *Record) Holding      { return Holding{} }
func (idle) Emptying(identity.Workload) bool                 { return false }
func (idle) Unrouted(identity.Workload, int32, string) int32 { return 0 }

func TestStandingNamesTheClustersThatMatter(t *testing.T) {
	clusters := []Cluster{idle{"north"}, idle{"south"}, idle{"west"}}
	silent := map[string]*v1alpha1.Cluster{"east": joined(metav1.ConditionUnknown)}
	fleets := New(Options{
		Clusters: func() []Cluster { return clusters },
		Cluster: func(name string) (Cluster, bool) {
			i := slices.IndexFunc(clusters, func(c Cluster) bool { return c.Cluster() == name })
			if i < 0 {
				return nil, false
			}
			return clusters[i], true
		},
		Silent: func(name string) bool { return silent[name] != nil },
	})
	for name, test := range map[string]struct {
		ordinals         bool
		decision, status string
		want             []string
		failed           string
	}{
		"those that are to have it":                             {decision: `{"north":{"replicas":3}}`, want: []string{"north"}},
		"not all that are connected, also of one with ordinals": {ordinals: true, decision: `{"north":{"replicas":3}}`, want: []string{"north"}},
		"those that had it":                                     {ordinals: true, decision: `{"north":{"replicas":3}}`, status: `{"west":{"replicas":1}}`, want: []string{"north", "west"}},
		"those that are not connected, as they were seen last": {
			decision: `{"east":{"replicas":3}}`, status: `{"east":{"replicas":2,"problem":"no room"}}`, want: []string{"east"}, failed: "east",
		},
		"those that answer, as they are": {decision: `{"north":{"replicas":3}}`, status: `{"north":{"problem":"no room"}}`, want: []string{"north"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fleets.Standing(recordedWorkload(test.ordinals, test.decision, test.status))
			if names := slices.Sorted(maps.Keys(got.Fleet.Members)); !slices.Equal(names, test.want) {
				t.Errorf("members %v, want %v", names, test.want)
			}
			if names := slices.Sorted(maps.Keys(got.Steps)); !slices.Equal(names, test.want) {
				t.Errorf("steps of %v, want %v", names, test.want)
			}
			for cluster, m := range got.Fleet.Members {
				if m.Failed != (cluster == test.failed) {
					t.Errorf("%s has failed: %t", cluster, m.Failed)
				}
			}
			if got.Fleet.Decision.Total() != 3 || got.Fleet.Decision.Equal(placement.Decision{}) {
				t.Errorf("the decision is %v", got.Fleet.Decision)
			}
		})
	}
}
