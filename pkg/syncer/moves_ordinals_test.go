package syncer

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

var setKind, _ = projection.ForResource(statefulSetResource)

// shownAbove is the mirror of a pod of a cluster.
func shownAbove(pod *corev1.Pod, cluster string) *corev1.Pod {
	mirror := pod.DeepCopy()
	mirror.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	return mirror
}

// What moves breaks before it is made: no ordinal may run twice.
func TestAnOrdinalStartsOnceItIsGoneElsewhere(t *testing.T) {
	toWest := statefulSet("db", `{"west":{"replicas":3}}`, 3)
	grown := statefulSet("db", `{"east":{"replicas":3},"west":{"replicas":4,"start":3}}`, 7)
	remembered := func(decision, breakdown string) *appsv1.StatefulSet {
		above := statefulSet("db", decision, 3)
		above.Annotations[v1alpha1.AnnotationStatus] = breakdown
		return above
	}
	earlier := projectedSet(toWest, 0, 3)
	earlier.UID = "an-earlier-one"
	last := podBelow(earlier, "db-2", "")
	ended := last.DeepCopy()
	ended.Status.Phase = corev1.PodFailed
	going := projectedSet(toWest, 0, 3)
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	offset := statefulSet("db", `{"west":{"replicas":3}}`, 3)
	offset.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 10}

	for name, test := range map[string]struct {
		above *appsv1.StatefulSet
		// east is what the other cluster holds, west what the one in question does, mirrored what is shown above of east.
		east, west, mirrored []projection.Object
		// apart tells that nobody can ask east.
		apart bool
		want  placement.Share
		held  bool
	}{
		"nothing runs elsewhere": {
			above: toWest, want: placement.Share{Replicas: 3},
		},
		"all of it is still elsewhere": {
			above: toWest, east: []projection.Object{projectedSet(toWest, 0, 3)}, held: true,
		},
		"one is still elsewhere": {
			above: toWest, east: []projection.Object{projectedSet(toWest, 2, 1)}, want: placement.Share{Replicas: 2}, held: true,
		},
		"the last was handed over": {
			above: toWest, east: []projection.Object{projectedSet(toWest, 0, 2)}, want: placement.Share{Start: 2, Replicas: 1}, held: true,
		},
		"one is to start elsewhere, though it has no pod yet": {
			above: toWest, east: []projection.Object{projectedSet(toWest, 2, 5)}, want: placement.Share{Replicas: 2}, held: true,
		},
		"others are elsewhere": {
			above: toWest, east: []projection.Object{projectedSet(toWest, 3, 4)}, want: placement.Share{Replicas: 3},
		},
		"a pod is left of what was deleted": {
			above: toWest, east: []projection.Object{last}, mirrored: []projection.Object{shownAbove(last, "east")},
			want: placement.Share{Replicas: 2}, held: true,
		},
		"a pod is left of what is being deleted": {
			above: toWest, east: []projection.Object{going, podBelow(going, "db-0", "")}, held: true,
		},
		"nothing is left of it": {
			above: toWest, east: []projection.Object{going}, want: placement.Share{Replicas: 3},
		},
		"a pod that is left has ended": {
			above: toWest, east: []projection.Object{ended}, mirrored: []projection.Object{shownAbove(ended, "east")}, want: placement.Share{Replicas: 3},
		},
		"a pod of somebody else has the name": {
			above: toWest, east: []projection.Object{last}, want: placement.Share{Replicas: 3},
		},
		"what it has it keeps": {
			above: grown, east: []projection.Object{projectedSet(grown, 0, 7)}, west: []projection.Object{projectedSet(grown, 3, 1)},
			want: placement.Share{Start: 3, Replicas: 1}, held: true,
		},
		"it grows when the others have shrunk": {
			above: grown, east: []projection.Object{projectedSet(grown, 0, 3)}, west: []projection.Object{projectedSet(grown, 3, 1)},
			want: placement.Share{Start: 3, Replicas: 4},
		},
		"a cluster that nobody can ask may run what it last did": {
			above: remembered(`{"west":{"replicas":3}}`, `{"east":{"replicas":1,"start":2}}`), apart: true,
			want: placement.Share{Replicas: 2}, held: true,
		},
		"or what it was to run": {
			above: remembered(`{"east":{"replicas":3},"west":{"replicas":1,"start":2}}`, `{"east":{}}`), apart: true,
			want: placement.Share{Start: 2}, held: true,
		},
		"and nothing else": {
			above: remembered(`{"west":{"replicas":3}}`, `{"east":{"replicas":1,"start":3}}`), apart: true, want: placement.Share{Replicas: 3},
		},
		"ordinals of the user's own count": {
			above: offset, east: []projection.Object{projectedSet(offset, 0, 5)}, want: placement.Share{Replicas: 3},
		},
		"and are compared as they are": {
			above: offset, east: []projection.Object{projectedSet(offset, 11, 1)}, want: placement.Share{Start: 2, Replicas: 1}, held: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, append(test.mirrored, test.above)...)
			if !test.apart {
				attach(t, u, "east", test.east...)
			}
			west := attach(t, u, "west", test.west...)
			got := west.next(test.above)
			if got.Share.Replicas == 0 && test.want.Replicas == 0 {
				got.Share.Start = test.want.Start
			}
			if got.Share != test.want || got.Held != test.held {
				t.Errorf("%+v; want %+v, held %t", got, test.want, test.held)
			}
		})
	}
}

func TestWhatWasWrittenCountsBeforeTheWatchShowsIt(t *testing.T) {
	above := statefulSet("db", `{"east":{"replicas":3}}`, 3)
	u := newUpstream(t, above)
	east, west := attach(t, u, "east"), attach(t, u, "west")
	key := identity.Workload{Kind: setKind, Object: above}.Key()
	if east.next(above).Held {
		t.Fatal("the first one has to wait")
	}
	u.Fleets.Writing(key, "east", "hash")
	// Another decision comes before east's watch shows anything.
	moved := statefulSet("db", `{"west":{"replicas":3}}`, 3)
	west.states.Set(key, states.State{Wait: states.Wait{Held: true}})
	if got := west.next(moved); got.Share.Replicas != 0 || got.Reason != `waits for ordinals 0-2 to stop in cluster "east"` {
		t.Errorf("west gets %+v while east starts them", got)
	}
	written := projectedSet(above, 0, 3)
	written.Annotations[v1alpha1.AnnotationProjection] = "hash"
	east.seen(t, setKind, key, written)
	if _, reserved := u.Fleets.Reserved(key, "east"); reserved {
		t.Error("the reservation is still there once the watch shows what was written")
	}
	if got := west.enqueued(); len(got) != 1 {
		t.Errorf("west looks at %v, want the StatefulSet", got)
	}
	if west.next(moved).Held {
		t.Error("west waits for nobody")
	}
	u.Fleets.ReleaseAll("west")
	if _, reserved := u.Fleets.Reserved(key, "west"); reserved {
		t.Error("a reservation is left")
	}
}

func TestTheLastPodOfAnOrdinalWakesWhoWaitsForIt(t *testing.T) {
	above := statefulSet("db", `{"west":{"replicas":3}}`, 3)
	u := newUpstream(t, above)
	east, west, north := attach(t, u, "east"), attach(t, u, "west"), attach(t, u, "north")
	west.states.Set(identity.Workload{Kind: setKind, Object: above}.Key(), states.State{Wait: states.Wait{Held: true}})
	east.handlers.PodLeft(podBelow(projectedSet(above, 0, 3), "db-0", ""))
	if got := west.enqueued(); len(got) != 1 || got[0] != "statefulsets shop/db" {
		t.Errorf("west looks at %v, want the StatefulSet", got)
	}
	u.router.WakeAll(east.routed)
	if got := west.enqueued(); len(got) != 1 {
		t.Errorf("west looks at %v when a cluster becomes known, want the StatefulSet", got)
	}
	if got := north.enqueued(); len(got) != 0 {
		t.Errorf("north looks at %v, want nothing", got)
	}
	east.handlers.PodLeft(&corev1.Pod{ObjectMeta: objectMeta("bare")})
}

func TestAClusterIsEmptiedBeforeItsPartIsDeleted(t *testing.T) {
	above := statefulSet("db", `{"west":{"replicas":3}}`, 3)
	scaled := func(replicas, counted int32, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		set := projectedSet(above, 0, replicas)
		set.Status.Replicas, set.Status.AvailableReplicas = counted, counted
		for _, edit := range edits {
			edit(set)
		}
		return set
	}
	for name, test := range map[string]struct {
		live *appsv1.StatefulSet
		pods []projection.Object
		want bool
		asks int32
	}{
		"it still asks for some":          {live: scaled(3, 3), want: true, asks: 2}, // one after another
		"it asks for the last":            {live: scaled(1, 1), want: true, asks: 1}, // those before it do not serve elsewhere yet
		"a pod is left":                   {live: scaled(0, 0), pods: []projection.Object{podBelow(scaled(0, 0), "db-0", "")}, want: true},
		"its controller counts some":      {live: scaled(0, 1), want: true},
		"its controller has not seen it":  {live: scaled(0, 0, func(set *appsv1.StatefulSet) { set.Generation++ }), want: true},
		"all are gone":                    {live: scaled(0, 0)},
		"it is being deleted":             {live: scaled(3, 3, func(set *appsv1.StatefulSet) { set.DeletionTimestamp = &metav1.Time{Time: time.Now()} })},
		"it is of an earlier object":      {live: scaled(3, 3, func(set *appsv1.StatefulSet) { set.Annotations[v1alpha1.AnnotationUID] = "earlier" })},
		"a pod of somebody else is there": {live: scaled(0, 0), pods: []projection.Object{podBelow(above, "db-0", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, above, namespace("shop"))
			s := attach(t, u, "east", append(test.pods, test.live)...)
			if got := s.holding.Emptying(identity.Workload{Kind: setKind, Object: above}); got != test.want {
				t.Errorf("to empty: %t, want %t", got, test.want)
			}
			desired, waits, err := s.desired(setKind, above, test.live)
			if err != nil || (desired != nil) != test.want || waits.Held != test.want {
				t.Fatalf("projects %v, held %t, %v; want it %t", desired, waits.Held, err, test.want)
			}
			if test.want && *desired.(*appsv1.StatefulSet).Spec.Replicas != test.asks {
				t.Errorf("asks for %d replicas, want %d", *desired.(*appsv1.StatefulSet).Spec.Replicas, test.asks)
			}
		})
	}
}

// What nobody is to have, because the cluster that was to have it is removed, does not leave for nowhere.
func TestOrdinalsWithoutAPlaceStayWhereTheyAre(t *testing.T) {
	for name, test := range map[string]struct {
		decision string
		asked    int32
		leaving  bool
		want     int32 // of the two that east has
	}{
		"all stay":                       {asked: 3, want: 2},
		"no more than are asked for":     {asked: 1, want: 1},
		"a cluster that is removed goes": {asked: 3, leaving: true},
		"others are decided about":       {decision: `{"west":{"replicas":1,"start":2}}`, asked: 3, want: 2},
		"one of them is":                 {decision: `{"west":{"replicas":2,"start":1}}`, asked: 3, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			above := statefulSet("db", test.decision, test.asked)
			live := projectedSet(above, 0, 2)
			live.Status.AvailableReplicas = 2
			s := attach(t, newUpstream(t, above, namespace("shop")), "east", live)
			s.Leaving = func(string) (bool, string) { return test.leaving, "" }
			desired, _, err := s.desired(setKind, above, live)
			if err != nil {
				t.Fatal(err)
			}
			got := int32(0)
			if desired != nil {
				got = *desired.(*appsv1.StatefulSet).Spec.Replicas
			}
			if got != test.want {
				t.Errorf("has %d replicas, want %d", got, test.want)
			}
		})
	}
}
