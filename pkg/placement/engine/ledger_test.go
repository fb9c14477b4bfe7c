package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var start = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// oneCore is what a replica requests in most tests.
var oneCore = placement.Resources{corev1.ResourceCPU: 1000, corev1.ResourcePods: 1}

func on(cluster string, replicas int32) placement.Decision {
	return placement.Decision{cluster: {Replicas: replicas}}
}

// recount is a second ledger, which keeps no sums: it counts everything anew when it is asked.
type recount struct {
	shown    map[Ref]counted
	expected map[Ref]counted
	until    map[Ref]time.Time
}

type counted struct {
	requests placement.Resources
	decision placement.Decision
	running  map[string]int32
}

func newRecount() *recount {
	return &recount{shown: map[Ref]counted{}, expected: map[Ref]counted{}, until: map[Ref]time.Time{}}
}

func (r *recount) set(k Ref, e counted) {
	r.forget(k)
	r.shown[k] = e
}

func (r *recount) forget(k Ref) {
	delete(r.shown, k)
	delete(r.expected, k)
	delete(r.until, k)
}

func (r *recount) expect(k Ref, e counted, now time.Time) {
	e.running = r.entries(now)[k].running
	r.expected[k], r.until[k] = e, now.Add(expectation)
}

func (r *recount) entries(now time.Time) map[Ref]counted {
	out := maps.Clone(r.shown)
	for k, e := range r.expected {
		if r.until[k].After(now) {
			out[k] = e
		}
	}
	return out
}

func (r *recount) neighbours(namespace, except string, now time.Time) placement.Neighbours {
	out := placement.Neighbours{}
	for k, e := range r.entries(now) {
		if k.Namespace == namespace && k.Name != except {
			out.Add(e.decision)
		}
	}
	return out
}

func (r *recount) load(cluster string, now time.Time) (placed, coming placement.Resources) {
	placed, coming = placement.Resources{}, placement.Resources{}
	for _, e := range r.entries(now) {
		if share, ok := e.decision[cluster]; ok {
			placed.Add(e.requests, int64(share.Replicas))
			coming.Add(e.requests, int64(max(0, share.Replicas-e.running[cluster])))
		}
	}
	return placed, coming
}

// without leaves out what is zero: a sum that was taken off again is not told from one that never was.
func without[K comparable](m map[K]int64) map[K]int64 {
	out := map[K]int64{}
	for k, v := range m {
		if v != 0 {
			out[k] = v
		}
	}
	return out
}

// asMap is without what is zero, too.
func asMap(amounts placement.Amounts) map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{}
	for _, a := range amounts {
		out[a.Name] = a.Value
	}
	return without(out)
}

var deployments, _ = projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("Deployment"))

func wanted(namespace, name string, requests placement.Resources) placement.Workload {
	return placement.Workload{GVK: deployments.GVK, Namespace: namespace, Name: name, Requests: requests}
}

func TestSumsEqualARecountWhateverHappens(t *testing.T) {
	namespaces, names, clusters := []string{"shop", "bank"}, []string{"web", "api", "db"}, []string{"east", "west", "north"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		clock := testingclock.NewFakePassiveClock(start)
		l, dumb := newLedger(clock), newRecount()
		pick := func(from []string) string { return from[random.IntN(len(from))] }
		decision := func() placement.Decision {
			d := placement.Decision{}
			for range random.IntN(3) {
				d[pick(clusters)] = placement.Share{Replicas: random.Int32N(5)}
			}
			return d
		}
		for step := range 60 {
			k := Ref{"Deployment", pick(namespaces), pick(names)}
			requests := placement.Resources{corev1.ResourceCPU: 100 * random.Int64N(5), corev1.ResourcePods: 1}
			did := ""
			switch random.IntN(5) {
			case 0:
				e := counted{requests: requests, decision: decision(), running: map[string]int32{pick(clusters): random.Int32N(6)}}
				l.set(k, entry{requests: requests}, e.decision, e.running)
				dumb.set(k, e)
				did = "set"
			case 1:
				l.forget(k)
				dumb.forget(k)
				did = "forget"
			case 2, 3:
				d := decision()
				l.expect(wanted(k.Namespace, k.Name, requests), d)
				dumb.expect(k, counted{requests: requests, decision: d}, clock.Now())
				did = "expect"
			case 4:
				clock.SetTime(clock.Now().Add(time.Duration(random.IntN(8)) * time.Second))
				did = "wait"
			}
			for _, namespace := range namespaces {
				for _, except := range append([]string{""}, names...) {
					want := without(dumb.neighbours(namespace, except, clock.Now()))
					if got := without(l.neighbours(wanted(namespace, except, nil))); !maps.Equal(got, want) {
						t.Fatalf("seed %d, step %d (%s %v): neighbours in %s except %q %v, want %v", seed, step, did, k, namespace, except, got, want)
					}
				}
			}
			for _, cluster := range clusters {
				placed, coming := dumb.load(cluster, clock.Now())
				got := l.load(cluster)
				if !maps.Equal(asMap(got.Placed), without(placed)) || !maps.Equal(asMap(got.Assumed), without(coming)) {
					t.Fatalf("seed %d, step %d (%s %v): load of %s %+v, want placed %v and coming %v", seed, step, did, k, cluster, got, placed, coming)
				}
			}
		}
	}
}

func TestDecisionThatNoWatchShowsIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		// before runs at the start; the expectation for 3 replicas on east follows, and after, that for the time passed.
		before func(l *ledger)
		after  func(l *ledger)
		passed time.Duration
		want   placement.Neighbours
	}{
		"it counts for a while": {
			passed: expectation - time.Nanosecond,
			want:   placement.Neighbours{"east": 3},
		},
		"and no longer": {
			passed: expectation,
			want:   nil,
		},
		"a decision that the watch has shown stays": {
			after: func(l *ledger) {
				l.set(Ref{"Deployment", "shop", "web"}, entry{requests: oneCore}, on("east", 3), nil)
			},
			passed: time.Hour,
			want:   placement.Neighbours{"east": 3},
		},
		"what the watch showed before comes back": {
			before: func(l *ledger) {
				l.set(Ref{"Deployment", "shop", "web"}, entry{requests: oneCore}, on("west", 2), nil)
			},
			passed: expectation,
			want:   placement.Neighbours{"west": 2},
		},
		"a later decision about the same workload is not taken back with it": {
			after: func(l *ledger) {
				l.clock.(*testingclock.FakePassiveClock).SetTime(start.Add(expectation / 2))
				l.expect(wanted("shop", "web", oneCore), on("west", 1))
			},
			passed: expectation,
			want:   placement.Neighbours{"west": 1},
		},
		"two dry runs leave nothing behind": {
			after: func(l *ledger) {
				l.clock.(*testingclock.FakePassiveClock).SetTime(start.Add(expectation / 2))
				l.expect(wanted("shop", "web", oneCore), on("east", 3))
			},
			passed: 2 * expectation,
			want:   nil,
		},
		"a workload that was deleted and made again is not taken back with the first": {
			after: func(l *ledger) {
				l.forget(Ref{"Deployment", "shop", "web"})
				l.set(Ref{"Deployment", "shop", "web"}, entry{requests: oneCore}, on("west", 4), nil)
			},
			passed: expectation,
			want:   placement.Neighbours{"west": 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakePassiveClock(start)
			l := newLedger(clock)
			if test.before != nil {
				test.before(l)
			}
			l.expect(wanted("shop", "web", oneCore), on("east", 3))
			if test.after != nil {
				test.after(l)
			}
			clock.SetTime(start.Add(test.passed))
			if got := l.neighbours(wanted("shop", "other", nil)); !maps.Equal(got, test.want) {
				t.Errorf("neighbours %v, want %v", got, test.want)
			}
		})
	}
}

func TestNeighboursLeaveOutTheWorkloadItself(t *testing.T) {
	l := newLedger(testingclock.NewFakePassiveClock(start))
	l.set(Ref{"Deployment", "shop", "web"}, entry{}, on("east", 3), nil)
	l.set(Ref{"Deployment", "shop", "api"}, entry{}, on("west", 1), nil)
	l.set(Ref{"Deployment", "shop", "none"}, entry{}, on("west", 0), nil)
	l.set(Ref{"Deployment", "bank", "web"}, entry{}, on("north", 9), nil)
	for name, want := range map[string]placement.Neighbours{
		"web":   {"west": 2},
		"api":   {"east": 3, "west": 1},
		"other": {"east": 3, "west": 2},
	} {
		if got := l.neighbours(wanted("shop", name, nil)); !maps.Equal(got, want) {
			t.Errorf("neighbours of %s %v, want %v", name, got, want)
		}
	}
}

// What is on its way to a cluster is not free, though no pod requests it yet.
func TestCapacityIsComingUntilTheBreakdownShowsPods(t *testing.T) {
	deployment := func(breakdown string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
			v1alpha1.AnnotationPlacement: `{"east":{"replicas":3}}`, v1alpha1.AnnotationStatus: breakdown,
		}}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}}
		return d
	}
	l := newLedger(testingclock.NewFakePassiveClock(start))
	handler := l.handler(deployments, func(Ref) {})
	last := deployment("")
	handler.OnAdd(last, false)
	for _, step := range []struct {
		breakdown string
		want      int64
	}{
		{"", 1500},
		{`{"east":{"replicas":1}}`, 1000},
		{`{"east":{"replicas":3}}`, 0},
		{`{"east":{"replicas":4}}`, 0}, // surge
		{`{"west":{"replicas":3}}`, 1500},
		{`not JSON`, 1500},
	} {
		next := deployment(step.breakdown)
		handler.OnUpdate(last, next)
		last = next
		load := l.load("east")
		if got := load.Assumed.Of(corev1.ResourceCPU); got != step.want {
			t.Errorf("breakdown %q: %d thousandths of a core are coming, want %d", step.breakdown, got, step.want)
		}
		if got := load.Placed.Of(corev1.ResourceCPU); got != 1500 {
			t.Errorf("breakdown %q: %d thousandths of a core are placed, want 1500", step.breakdown, got)
		}
	}
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/web", Obj: last})
	if load := l.load("east"); load.Placed.Of(corev1.ResourceCPU) != 0 || load.Assumed.Of(corev1.ResourceCPU) != 0 {
		t.Errorf("a deleted workload still counts: %+v", load)
	}
}

func TestWorkloadWithoutADecisionIsForgotten(t *testing.T) {
	for _, annotation := range []string{"", "{}", "not JSON", `{"east":{"replicas":-1}}`} {
		t.Run(fmt.Sprintf("%q", annotation), func(t *testing.T) {
			l := newLedger(testingclock.NewFakePassiveClock(start))
			l.set(Ref{"Deployment", "shop", "web"}, entry{requests: oneCore}, on("east", 3), nil)
			before := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
				Annotations: map[string]string{v1alpha1.AnnotationPlacement: on("east", 3).String()}}}
			after := before.DeepCopy()
			after.Annotations[v1alpha1.AnnotationPlacement] = annotation
			l.handler(deployments, func(Ref) {}).OnUpdate(before, after)
			if got := l.neighbours(wanted("shop", "other", nil)); len(got) != 0 {
				t.Errorf("neighbours %v, want none", got)
			}
		})
	}
}

// A load that is known to be nothing bounds nothing, while one that is not known would have limits held against all that is requested.
func TestLoadOfAnEmptyClusterIsKnown(t *testing.T) {
	got := newLedger(testingclock.NewFakePassiveClock(start)).load("east")
	if want := (placement.Load{Placed: placement.Amounts{}}); !reflect.DeepEqual(got, want) {
		t.Errorf("load %+v, want %+v", got, want)
	}
}
