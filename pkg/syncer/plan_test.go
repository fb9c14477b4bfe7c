package syncer

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// What is done about an object, and in which order, is said before anything is.
func TestPlan(t *testing.T) {
	now := &metav1.Time{Time: time.Now()}
	toEast, toWest := deployment("web", `{"east":{"replicas":3}}`), deployment("web", `{"west":{"replicas":3}}`)
	deleted := deployment("web", `{"east":{"replicas":3}}`, func(d *appsv1.Deployment) {
		d.DeletionTimestamp, d.Finalizers = now, []string{v1alpha1.FinalizerProjection}
	})
	orphaning := deleted.DeepCopy()
	orphaning.Finalizers = append(orphaning.Finalizers, metav1.FinalizerOrphanDependents)
	held := deleted.DeepCopy()
	held.Finalizers = append(held.Finalizers, "example.com/hold")
	set := statefulSet("db", `{"west":{"replicas":3}}`, 3)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	emptied := projectedSet(set, 0, 0)
	emptied.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates
	going := projected(toEast, 3, 3)
	going.DeletionTimestamp, going.DeletionGracePeriodSeconds = now, ptr.To[int64](30)

	for name, test := range map[string]struct {
		above, live projection.Object
		seen        func(*planning.Look)
		leaves      string // the manner in which the cluster is removed, "" if it is not
		want        string
	}{
		"it is made": {
			above: toEast,
			want:  "project (Create) after its namespace, rights above, classes, quotas, pod webhooks, what it names: the cluster has none",
		},
		"it is to run elsewhere and has never been here": {above: toWest, want: "forget: the cluster holds nothing of it"},
		"it leaves":                              {above: toWest, live: projected(toWest, 0, 0), want: "delete: the cluster should not hold it"},
		"it is deleted":                          {above: deleted, live: projected(toEast, 3, 3), want: "delete: the cluster should not hold it"},
		"its pods are kept":                      {above: orphaning, live: projected(toEast, 3, 3), want: "delete, and keep what it owns: the cluster should not hold it"},
		"somebody holds it":                      {above: held, live: projected(toEast, 3, 3), want: "keep as it is: it is being deleted, and somebody holds it by a finalizer"},
		"its claims stay when it runs elsewhere": {above: set, live: emptied, want: "delete: the cluster should not hold it"},
		"it is ending already":                   {above: deleted, live: going, want: "forget: it is being deleted"},
		"what was written is not seen yet": {
			above: toEast, live: projected(toEast, 3, 3), seen: func(l *planning.Look) { l.Reservation = planning.Unseen },
			want: "wait for the watch: the watch is about to show what was written last",
		},
		"what was written is seen": {
			above: toEast, live: projected(toEast, 3, 3), seen: func(l *planning.Look) { l.Reservation, l.HandedOver = planning.Over, true },
			want: "drop the reservation: the watch shows what was written last, or nothing was",
		},
		"its owner leaves it behind": {
			above: toEast, live: projected(toEast, 3, 3), seen: func(l *planning.Look) { l.Orphan, l.HandedOver = mirrors.OrphanWaits, true },
			want: "do nothing: it outlives its owner, which is not gone yet or still has it above",
		},
		"a controller has taken it over": {
			above: toEast, live: projected(toEast, 3, 3), seen: func(l *planning.Look) { l.HandedOver = true },
			want: "leave it to its controller: a controller in the cluster has taken it over",
		},
		"the cluster leaves with what it has": {
			above: toEast, live: projected(toEast, 3, 3), leaves: v1alpha1.RemoveOrphan, seen: func(l *planning.Look) { l.Reservation = planning.Unseen },
			want: "let go of it: the cluster leaves with what it has",
		},
		"the cluster leaves with what it has, which is nothing": {
			above: toEast, leaves: v1alpha1.RemoveOrphan, want: "do nothing: there is nothing to let go of",
		},
		"somebody else has the name": {above: toWest, live: deployment("web", ""), want: "forget: it is not ours"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above, namespace("shop"))
			var has []projection.Object
			if test.live != nil {
				has = append(has, test.live)
			}
			s := attach(t, u, "east", has...)
			kind, _ := projection.KindOf(test.above)
			if test.leaves != "" {
				s.Leaving = func(string) (bool, string) { return true, test.leaves }
			}
			l := planning.Look{Key: identity.KeyOf(kind, test.above), Kind: kind, Above: test.above, Live: test.live}
			if test.seen != nil {
				test.seen(&l)
			}
			got := s.planner.Plan(l)
			if got.String() != test.want {
				t.Errorf("plans to %s\nwant     %s", got, test.want)
			}
			if test.above == set && (got.Removal.Owned != metav1.DeletePropagationOrphan) {
				t.Errorf("deletes with %+v, which takes the claims along", got.Removal)
			}
		})
	}
}

// What was begun earlier comes to its end in one step with what is to be done then, so that nothing waits for another look.
func TestAReservationIsDroppedBeforeThePlanIsMade(t *testing.T) {
	moving, held := deployment("web", `{"north":{"replicas":3}}`), heldBy(deployment("web", toEast), theirs)
	held.Generation = 7
	live := projected(moving, 3, 3)
	u := newUpstream(t, held, namespace("shop"))
	east, north := attach(t, u, "east", live), attach(t, u, "north", projected(moving, 3, 3))
	if step := east.next(moving); !step.None {
		t.Fatalf("east does %+v, want it to go", step)
	}
	key := identity.KeyOf(deployments, held)
	_ = east.reservations.write(key, projection.HashOf(live), func() error { return nil })
	north.states.Set(key, states.State{Wait: states.Wait{Held: true}})
	north.enqueued()
	if err := east.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, reserved := u.Fleets.Reserved(key, "east"); reserved {
		t.Error("it is still reserved")
	}
	if got := north.enqueued(); len(got) == 0 {
		t.Error("nobody is woken who waits for it")
	}
	if got := east.states.Of(key).Generation; got != 7 {
		t.Errorf("generation %d was looked at, want that of the plan which follows", got)
	}
}
