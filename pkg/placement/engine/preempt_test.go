package engine

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func priorityClass(name string, value int32, changes ...func(*schedulingv1.PriorityClass)) *schedulingv1.PriorityClass {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	for _, change := range changes {
		change(class)
	}
	return class
}

func byDefault(c *schedulingv1.PriorityClass) { c.GlobalDefault = true }
func peaceful(c *schedulingv1.PriorityClass)  { c.PreemptionPolicy = ptr.To(corev1.PreemptNever) }

// classed is a template of one core with a PriorityClass.
func classed(name string) *corev1.PodTemplateSpec {
	template := placed("any", nil).Spec.Template
	template.Spec.PriorityClassName = name
	return &template
}

func TestPrioritiesAreThoseOfClasses(t *testing.T) {
	for name, test := range map[string]struct {
		classes  []*schedulingv1.PriorityClass
		template *corev1.PodTemplateSpec
		want     int32
		preempts bool
	}{
		"the class that is named": {
			classes:  []*schedulingv1.PriorityClass{priorityClass("high", 100), priorityClass("usual", 7, byDefault)},
			template: classed("high"), want: 100, preempts: true,
		},
		"without a name the default": {
			classes: []*schedulingv1.PriorityClass{priorityClass("high", 100), priorityClass("usual", 7, byDefault)}, template: classed(""), want: 7, preempts: true,
		},
		"of several defaults the lowest": {
			classes: []*schedulingv1.PriorityClass{priorityClass("a", 9, byDefault), priorityClass("b", 7, byDefault)}, template: classed(""), want: 7, preempts: true,
		},
		"without a default nothing": {classes: []*schedulingv1.PriorityClass{priorityClass("high", 100)}, template: classed(""), preempts: true},
		"a class that stops nobody": {
			classes: []*schedulingv1.PriorityClass{priorityClass("high", 100, peaceful)}, template: classed("high"), want: 100,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			for _, class := range test.classes {
				objects = append(objects, class)
			}
			e := newEngine(t, objects...)
			if got, preempts := e.priorities.of(test.template); got != test.want || preempts != test.preempts {
				t.Errorf("got %d, preempts %t, want %d, %t", got, preempts, test.want, test.preempts)
			}
		})
	}
}

func TestDecidesToPreemptWhereThePolicyAllowsIt(t *testing.T) {
	full := func(name string) *v1alpha1.Cluster {
		c := joined(name, 2)
		c.Status.Requested = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		return c
	}
	low := runs("low", on("west", 2), on("west", 2))
	decide := func(t *testing.T, class string, allows corev1.PreemptionPolicy) placement.Result {
		e := newEngine(t, full("east"), full("west"), namespace(""), low, priorityClass("high", 100), priorityClass("calm", 100, peaceful),
			policy("rule", func(s *v1alpha1.ClusterPlacementPolicySpec) { s.PreemptionPolicy = allows }))
		e.levels = func(cluster string) []placement.Level {
			priority := map[string]int32{"east": 100, "west": 0}[cluster]
			return []placement.Level{{Priority: priority, Requests: placement.Resources{corev1.ResourceCPU: 2000, corev1.ResourcePods: 2}}}
		}
		w := workload("web", 2)
		w.Template = classed(class)
		result, ready := e.Place(w, nil)
		if !ready {
			t.Fatal("the clusters are not known")
		}
		return result
	}
	result := decide(t, "high", corev1.PreemptLowerPriority)
	if want := on("west", 2); !result.Decision.Equal(want) {
		t.Errorf("on %s, want %s: %s", result.Decision, want, result.Message())
	}
	if got, want := strings.Join(words.Texts(result.Notes), "; "), "it takes room of lower priority on west (Deployment shop/low)"; got != want {
		t.Errorf("notes %q, want %q", got, want)
	}
	for name, result := range map[string]placement.Result{
		"a policy that does not allow it": decide(t, "high", ""),
		"a class that does not want it":   decide(t, "calm", corev1.PreemptLowerPriority),
		"no priority":                     decide(t, "", corev1.PreemptLowerPriority),
	} {
		if len(result.Decision) > 0 {
			t.Errorf("%s: on %s, want nowhere", name, result.Decision)
		}
	}
}

// classedPolicy lets everything preempt that has a class which may, and divides.
func classedPolicy() *v1alpha1.ClusterPlacementPolicy {
	return policy("rule", func(s *v1alpha1.ClusterPlacementPolicySpec) {
		s.PreemptionPolicy = corev1.PreemptLowerPriority
		s.Division = &v1alpha1.Division{Type: v1alpha1.Divide}
	})
}

// requested has a cluster's pods request so many cores.
func requested(c *v1alpha1.Cluster, cores int64) *v1alpha1.Cluster {
	c.Status.Requested = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI)}
	return c
}

// runs is a Deployment that runs where it was placed, or elsewhere.
func runs(name string, decision, running placement.Decision) *appsv1.Deployment {
	d := placed(name, decision)
	d.Spec.Replicas = ptr.To(int32(decision.Total()))
	breakdown := summary.Breakdown{}
	for cluster, share := range running {
		breakdown[cluster] = summary.ClusterStatus{Replicas: share.Replicas}
	}
	d.Annotations[v1alpha1.AnnotationStatus] = breakdown.String()
	return d
}

// urgent wants one replica of three cores.
func urgent(name string) placement.Workload {
	w := workload(name, 1)
	w.Template, w.Requests = classed("high"), placement.Resources{corev1.ResourceCPU: 3000, corev1.ResourcePods: 1}
	return w
}

func decided(t *testing.T, e *Engine, w placement.Workload, current placement.Decision) Decided {
	t.Helper()
	out, known := e.Decide(w, current)
	if !known {
		t.Fatal("the clusters are not known")
	}
	return out
}

func TestWaitsForWhatCanRunElsewhereBeforeItStopsTheRest(t *testing.T) {
	both := func(east, west placement.Decision) placement.Decision {
		out := maps.Clone(east)
		maps.Copy(out, west)
		return out
	}
	low := workload("low", 4)
	low.Template = classed("")

	// Low has four cores of east, and west has two.
	e := newEngine(t, requested(joined("east", 4), 4), requested(joined("west", 2), 0), namespace(""), priorityClass("high", 100), classedPolicy(),
		runs("low", on("east", 4), on("east", 4)))
	first := decided(t, e, urgent("web"), nil)
	if len(first.Decision) > 0 || first.Unplaced != 1 {
		t.Fatalf("placed on %s, want nowhere yet: %s", first.Decision, first.Message())
	}
	if want := "1 replica waits for room on east until replicas of Deployment shop/low, which has a lower priority, run elsewhere"; first.Message() != want {
		t.Errorf("says %q, want %q", first.Message(), want)
	}
	if again := decided(t, e, low, on("east", 4)); !again.Decision.Equal(on("east", 4)) {
		t.Errorf("low goes to %s before anybody waits for it", again.Decision)
	}
	if concerned := e.Book(urgent("web"), first); len(concerned) != 1 || concerned[0].Name != "low" {
		t.Fatalf("concerns %v, want low", concerned)
	}
	if concerned := e.Book(urgent("web"), decided(t, e, urgent("web"), nil)); len(concerned) > 0 {
		t.Errorf("the same claim concerns %v again", concerned)
	}
	if other := decided(t, e, urgent("other"), nil); len(other.Decision) > 0 {
		t.Errorf("another one of its priority goes to %s", other.Decision)
	}
	moves := decided(t, e, low, on("east", 4))
	if want := both(on("east", 2), on("west", 2)); !moves.Decision.Equal(want) {
		t.Fatalf("low goes to %s, want %s: %s", moves.Decision, want, moves.Message())
	}
	if !moves.MakesWay(on("east", 4)) {
		t.Error("low does not say that it makes way")
	}
	if waiting := e.Waiting(low); len(waiting) != 1 || waiting[0].Name != "web" {
		t.Errorf("%v wait for low, want web", waiting)
	}
	e.Placed(low, moves.Decision)
	if on := decided(t, e, urgent("web"), nil); len(on.Decision) > 0 || len(on.Stops) > 0 {
		t.Errorf("placed on %s before low has left: %s", on.Decision, on.Message())
	}
	if again := decided(t, e, low, moves.Decision); !again.Decision.Equal(moves.Decision) {
		t.Errorf("low goes on to %s", again.Decision)
	}

	// Once it has, the rest is for the scheduler of the cluster to stop. Nobody remembers anything, as after a restart.
	e = newEngine(t, requested(joined("east", 4), 2), requested(joined("west", 2), 2), namespace(""), priorityClass("high", 100), classedPolicy(),
		runs("low", moves.Decision, moves.Decision))
	last := decided(t, e, urgent("web"), nil)
	if !last.Decision.Equal(on("east", 1)) {
		t.Fatalf("placed on %s, want east: %s", last.Decision, last.Message())
	}
	if got, want := strings.Join(words.Texts(last.Notes), "; "), "it takes room of lower priority on east (Deployment shop/low)"; got != want {
		t.Errorf("notes %q, want %q", got, want)
	}
	if len(last.Stops) != 1 || last.Stops[0].Name != "low" || !strings.HasPrefix(last.Stops[0].Message,
		"Deployment shop/web of priority 100 takes the room of 1 replica of priority 0 on east, which cannot run elsewhere; ") {
		t.Errorf("tells %+v", last.Stops)
	}
}

func TestDoesNotWaitForEver(t *testing.T) {
	e := newEngine(t, requested(joined("east", 4), 4), requested(joined("west", 2), 0), namespace(""), priorityClass("high", 100), classedPolicy(),
		runs("low", on("east", 4), on("east", 4)))
	first := decided(t, e, urgent("web"), nil)
	if want := start.Add(patience); !first.Next.Equal(want) {
		t.Errorf("looks again at %s, want %s", first.Next, want)
	}
	e.Book(urgent("web"), first)
	e.clock.(*testingclock.FakePassiveClock).SetTime(start.Add(patience))
	if late := decided(t, e, urgent("web"), nil); !late.Decision.Equal(on("east", 1)) {
		t.Errorf("placed on %s, want east: %s", late.Decision, late.Message())
	}
}

func TestNobodyElseTakesTheRoomThatIsWaitedFor(t *testing.T) {
	e := newEngine(t, requested(joined("east", 4), 1), requested(joined("west", 2), 2), namespace(""), priorityClass("high", 100), classedPolicy())
	e.bookings.set(Ref{"Deployment", "shop", "web"}, &booking{priority: 100, room: map[string]placement.Resources{"east": {corev1.ResourceCPU: 3000}}})
	same, below := workload("same", 1), workload("below", 1)
	same.Template, below.Template = classed("high"), classed("")
	for _, w := range []placement.Workload{same, below} {
		if got := decided(t, e, w, nil); len(got.Decision) > 0 {
			t.Errorf("%s is placed on %s", w.Name, got.Decision)
		}
	}
	if got := decided(t, e, workload("web", 3), nil); !got.Decision.Equal(on("east", 3)) {
		t.Errorf("web itself is placed on %s", got.Decision)
	}
	e.Release(Ref{"Deployment", "shop", "web"})
	if got := decided(t, e, below, nil); !got.Decision.Equal(on("east", 1)) {
		t.Errorf("below is placed on %s once nobody waits", got.Decision)
	}
}

func TestGoesWhereFewestHaveToStop(t *testing.T) {
	lowIn := func(cluster string, pin string) *appsv1.Deployment {
		d := runs("low-"+cluster, on(cluster, 3), on(cluster, 3))
		d.Annotations[v1alpha1.AnnotationClusters] = pin
		return d
	}
	for name, test := range map[string]struct {
		east, west string // pins of what is there
		want       string
		waits      bool
	}{
		"where what is there can run elsewhere": {east: "east", west: "west,north", want: "west", waits: true},
		"wherever that is":                      {east: "east,north", west: "west", want: "east", waits: true},
		"of equals where it would go anyway":    {east: "east", west: "west", want: "east"},
	} {
		t.Run(name, func(t *testing.T) {
			choosing := classedPolicy()
			choosing.Spec.Clusters = &v1alpha1.ClusterSelector{Names: []string{"east", "west"}}
			e := newEngine(t, requested(joined("east", 3), 3), requested(joined("west", 3), 3), joined("north", 3), namespace(""),
				priorityClass("high", 100), choosing, lowIn("east", test.east), lowIn("west", test.west))
			got := decided(t, e, urgent("web"), nil)
			if len(got.Preemptions) != 1 || got.Preemptions[0].Cluster != test.want || (got.Preemptions[0].Waiting > 0) != test.waits {
				t.Errorf("preempts %+v, want on %s: %s", got.Preemptions, test.want, got.Message())
			}
		})
	}
}

// A rollout has more pods for a while than are wanted. That is no reason to wait.
func TestDoesNotWaitForRollouts(t *testing.T) {
	low := runs("low", on("east", 3), on("east", 4))
	low.Annotations[v1alpha1.AnnotationClusters] = "east"
	e := newEngine(t, requested(joined("east", 4), 4), namespace(""), priorityClass("high", 100), classedPolicy(), low)
	got := decided(t, e, urgent("web"), nil)
	if !got.Decision.Equal(on("east", 1)) {
		t.Errorf("placed on %s, want east: %s", got.Decision, got.Message())
	}
	if len(got.Preemptions) != 1 || len(got.Preemptions[0].Stopped) != 1 || got.Preemptions[0].Stopped[0].Replicas != 2 {
		t.Errorf("preempts %+v, want 2 replicas beside the one that is about to end", got.Preemptions)
	}
}

// What has nothing to have in a cluster any more is on its way out.
func TestWaitsForWhatHasMovedAfterAStart(t *testing.T) {
	e := newEngine(t, requested(joined("east", 4), 4), joined("west", 4), namespace(""), priorityClass("high", 100), classedPolicy(),
		runs("low", on("west", 4), on("east", 4)))
	if got := decided(t, e, pinned(urgent("web"), "east"), nil); len(got.Decision) > 0 || len(got.Preemptions) != 1 || got.Preemptions[0].Waiting != 1 {
		t.Errorf("placed on %s, want nowhere yet: %s", got.Decision, got.Message())
	}
}
