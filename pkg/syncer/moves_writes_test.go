package syncer

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// turned is a move of four replicas from east to north, one of which serves there, that is turned round when east has decided to give up one.
func turned(t *testing.T) (back *appsv1.Deployment, east, north *testSyncer) {
	t.Helper()
	four := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](4) }
	there, back := deployment("web", `{"north":{"replicas":4}}`, four), deployment("web", `{"east":{"replicas":4}}`, four)
	for _, d := range []*appsv1.Deployment{there, back} {
		d.Annotations[v1alpha1.AnnotationStatus] = `{"east":{"replicas":4},"north":{"replicas":1}}`
	}
	u := newUpstream(t, there)
	east, north = attach(t, u, "east", projected(there, 4, 4)), attach(t, u, "north", projected(there, 1, 1))
	if step := east.next(there); step.Share.Replicas != 3 {
		t.Fatalf("east does %+v, want it to give up a replica", step)
	}
	return back, east, north
}

func TestWhatIsBeingGivenUpReplacesNothing(t *testing.T) {
	back, east, north := turned(t)
	key := identity.KeyOf(deployments, back)
	keeps := func(when string, want bool) {
		t.Helper()
		if step := north.next(back); (step.Share.Replicas == 1) != want {
			t.Errorf("%s north does %+v, want it to keep its replica: %t", when, step, want)
		}
		north.reservations.forgo(key)
	}
	keeps("before anything is written", true)
	if err := east.reservations.write(key, "three", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	east.reservations.forgo(key)
	keeps("before the watch shows what was written", true)

	live := projected(back, 3, 4)
	live.Annotations[v1alpha1.AnnotationProjection] = "three"
	live.Generation = 2
	hold := func(d *appsv1.Deployment) {
		if err := east.below.Stores[deploymentResource].Update(d); err != nil {
			t.Fatal(err)
		}
	}
	hold(live)
	north.states.Set(key, states.State{Wait: states.Wait{Held: true}})
	east.seen(t, deployments, key, live)
	if got := north.enqueued(); len(got) != 1 {
		t.Errorf("north looks at %v, want the Deployment", got)
	}
	again := live.DeepCopy()
	again.Spec.Replicas, again.Generation = ptr.To[int32](4), 3
	hold(again)
	keeps("before the controllers have seen that it is to stay", true)
	seen := again.DeepCopy()
	seen.Status.ObservedGeneration = 3
	hold(seen)
	set := &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-1")}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(seen, deployments.GVK)}
	set.Generation, set.Status.ObservedGeneration = 3, 2
	if err := east.below.ReplicaSets.GetStore().Add(set); err != nil {
		t.Fatal(err)
	}
	keeps("before that of the ReplicaSet has", true)
	after := set.DeepCopy()
	after.Status.ObservedGeneration, after.ResourceVersion = 3, "2"
	if err := east.below.ReplicaSets.GetStore().Update(after); err != nil {
		t.Fatal(err)
	}
	if err := east.below.Namespaces.GetStore().Add(namespace("shop")); err != nil {
		t.Fatal(err)
	}
	east.handlers.OfReplicaSets().OnUpdate(set, after)
	if got := north.enqueued(); len(got) != 1 {
		t.Errorf("north looks at %v when the ReplicaSet is up to date, want the Deployment", got)
	}
	keeps("when all of them have", false)
}

func TestAStepThatIsNotWrittenGivesUpNothing(t *testing.T) {
	refused := apierrors.NewForbidden(corev1.Resource("deployments"), "web", errors.New("no"))
	for name, test := range map[string]struct {
		writes bool
		err    error
		want   bool // that others count on what is there
	}{
		"it waits for something else":       {want: true},
		"the cluster refuses it":            {writes: true, err: refused, want: true},
		"it is written":                     {writes: true},
		"nobody knows what has come of it":  {writes: true, err: apierrors.NewTimeoutError("too long", 1)},
		"the cluster's storage has failed":  {writes: true, err: apierrors.NewInternalError(errors.New("etcd"))},
		"the cluster breaks the connection": {writes: true, err: errors.New("http2: client connection lost")},
	} {
		t.Run(name, func(t *testing.T) {
			back, east, north := turned(t)
			key := identity.KeyOf(deployments, back)
			north.states.Set(key, states.State{Wait: states.Wait{Held: true}})
			if test.writes {
				if err := east.reservations.write(key, "hash", func() error { return test.err }); !errors.Is(err, test.err) {
					t.Fatal(err)
				}
			}
			east.reservations.forgo(key)
			if got := len(north.enqueued()) == 1; got != test.want {
				t.Errorf("north is woken: %t, want %t", got, test.want)
			}
			if step := north.next(back); step.None != test.want {
				t.Errorf("north does %+v, want it to give up its replica: %t", step, test.want)
			}
		})
	}
}

// What is deleted is as good as gone, whatever the watch shows.
func TestADeletionCountsBeforeTheWatchShowsIt(t *testing.T) {
	above := deployment("web", `{"north":{"replicas":3}}`)
	key := identity.KeyOf(deployments, above)
	for name, shown := range map[string]func(*appsv1.Deployment) projection.Object{
		"gone":       func(*appsv1.Deployment) projection.Object { return nil },
		"on its way": func(d *appsv1.Deployment) projection.Object { d.DeletionTimestamp = &metav1.Time{}; return d },
	} {
		t.Run(name, func(t *testing.T) {
			live := projected(above, 3, 3)
			u := newUpstream(t, above)
			east := attach(t, u, "east", live)
			attach(t, u, "north", projected(above, 3, 3))
			if step := east.next(above); !step.None {
				t.Fatalf("east does %+v, want it to go", step)
			}
			_ = east.reservations.write(key, moves.Gone, func() error { return nil })
			east.seen(t, deployments, key, shown(live.DeepCopy()))
			if _, reserved := u.Fleets.Reserved(key, "east"); reserved {
				t.Error("it is reserved although the watch shows that it goes")
			}
		})
	}
}
