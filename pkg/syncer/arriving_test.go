package syncer

import (
	"errors"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// Something comes to a cluster that has nothing of its namespace, and calls what runs elsewhere as soon as it runs.
func TestPodsBeginInAClusterOnceItIsLedToWhatTheyMayCall(t *testing.T) {
	there := podAt("db-1", "west", "10.2.0.1")
	slice, of := sliceOf("db", there), serviceWith("db")
	kind, _ := projection.KindOf(slice)
	led := func() projection.Object {
		held := asOurs(slice.DeepCopy(), string(slice.UID))
		held.Labels[discoveryv1.LabelManagedBy] = v1alpha1.EndpointSlicesManager
		return held
	}
	for name, test := range map[string]struct {
		network []string
		below   []projection.Object
		change  func(*testSyncer)
		waits   bool
	}{
		"it has neither Service nor slice":       {network: []string{"east", "west"}, waits: true},
		"it has the Service, and is led nowhere": {network: []string{"east", "west"}, below: objects(asOurs(serviceWith("db"), "uid-of-db")), waits: true},
		"it is led there":                        {network: []string{"east", "west"}, below: objects(asOurs(serviceWith("db"), "uid-of-db"), led())},
		"it shares no network with it":           {},
		"the slice was written a moment ago": {network: []string{"east", "west"}, below: objects(asOurs(serviceWith("db"), "uid-of-db")), change: func(s *testSyncer) {
			s.states.Set(identity.KeyOf(kind, slice), states.State{UID: slice.UID, Hash: "h"})
		}},
		"the Service cannot be made": {network: []string{"east", "west"}, below: objects(led()), change: func(s *testSyncer) {
			s.states.Set(identity.KeyOf(serviceKind(), of), states.State{UID: of.UID, Problem: "it is somebody else's"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			api := deployment("api", toEast)
			u := newUpstream(t, namespace("shop"), slice, there, of, deployment("db", toWest), api)
			meshed(u, test.network...)
			s := attach(t, u, "east", test.below...)
			if test.change != nil {
				test.change(s)
			}
			w := identity.Workload{Kind: deployments, Object: api}
			if _, err := s.lacking.HeldBack(t.Context(), w, projected(api, 1, 0), projected(api, 1, 0)); err != nil {
				t.Errorf("what runs already is held back: %v", err)
			}
			tries := 0
			for ; tries <= lacking.LedTries; tries++ {
				held, err := s.lacking.HeldBack(t.Context(), w, projected(api, 1, 0), nil)
				if held || err != nil && !errors.Is(err, errNotYet) {
					t.Fatalf("held back: %t, %v", held, err)
				}
				if err == nil {
					break
				}
				s.queue.AddRateLimited(w.Key())
			}
			if want := map[bool]int{true: lacking.LedTries, false: 0}[test.waits]; tries != want {
				t.Errorf("it begins after %d tries, want %d", tries, want)
			}
		})
	}
}
