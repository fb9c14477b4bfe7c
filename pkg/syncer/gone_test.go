package syncer

import (
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// A DELETE waits until all clusters have let go, so what tells of the last of them must not wait for anything.
func TestWhatHasLeftAClusterIsToldAtOnce(t *testing.T) {
	above := heldBy(deployment("web", toEast), v1alpha1.FinalizerProjection)
	starting := projected(deployment("web", toEast), 2, 0)
	for name, obj := range map[string]any{"as it goes": starting, "when the moment was missed": cache.DeletedFinalStateUnknown{Obj: starting}} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, namespace("shop"), above), "east")
			s.handlers.OfObjects(deployments).OnDelete(obj)
			if len(s.changes) != 1 || s.changes[0] != (change{identity.KeyOf(deployments, above), true}) {
				t.Errorf("told %v, want the Deployment, at once", s.changes)
			}
		})
	}
}

func TestWhenAPartOfAWorkloadHasSettled(t *testing.T) {
	serves, starts := projected(deployment("web", toEast), 2, 2), projected(deployment("web", toEast), 2, 0)
	for name, test := range map[string]struct {
		finalizers []string // of one that is being deleted
		below      []projection.Object
		state      states.State
		want       bool
	}{
		"when it serves":                          {below: []projection.Object{serves}, want: true},
		"not before":                              {below: []projection.Object{starts}},
		"not before it is there":                  {},
		"when it cannot come there":               {state: states.State{Problem: "taken"}, want: true},
		"when it is deleted and gone":             {finalizers: []string{v1alpha1.FinalizerProjection}, want: true},
		"not when it is deleted and there":        {finalizers: []string{v1alpha1.FinalizerProjection}, below: []projection.Object{serves}},
		"not when the cluster does not let it go": {finalizers: []string{v1alpha1.FinalizerProjection}, below: []projection.Object{serves}, state: states.State{Problem: "refused"}},
		"when somebody holds it and it serves":    {finalizers: []string{theirs}, below: []projection.Object{serves}, want: true},
		"when its pods go first and it is gone":   {finalizers: []string{v1alpha1.FinalizerProjection, "foregroundDeletion"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			above := deployment("web", toEast)
			if test.finalizers != nil {
				heldBy(above, test.finalizers...)
			}
			s := attach(t, newUpstream(t, namespace("shop"), above), "east", test.below...)
			if test.state.Problem != "" {
				s.states.Set(identity.KeyOf(deployments, above), test.state)
			}
			if got := s.reports.Settled(identity.KeyOf(deployments, above)); got != test.want {
				t.Errorf("settled %t, want %t", got, test.want)
			}
		})
	}
}
