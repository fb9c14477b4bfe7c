package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

// place puts an object into the world.
func (w *world) place(gvk schema.GroupVersionKind, o object) {
	k, _ := kindOf(gvk)
	w.put(k, o)
}

func cores(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI), corev1.ResourcePods: *resource.NewQuantity(100, resource.DecimalSI)}
}

// randomWorld has some clusters, of which others use a little, three priorities, and one rule for all.
func randomWorld(t *testing.T, r *rand.Rand) *world {
	w := newWorld("default")
	for i := range 2 + r.IntN(2) {
		c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i)}}
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue}}
		c.Status.Allocatable, c.Status.Requested = cores(3+r.Int64N(5)), corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(r.Int64N(2), resource.DecimalSI)}
		w.place(v1alpha1.SchemeGroupVersion.WithKind("Cluster"), c)
	}
	for name, value := range map[string]int32{"middle": 50, "high": 100} {
		w.place(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	p := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "rule"}}
	p.Spec.PreemptionPolicy = corev1.PreemptLowerPriority
	switch r.IntN(5) {
	case 0:
		p.Spec.KeepTogether = true
	case 1:
		p.Spec.Division = &v1alpha1.Division{Type: v1alpha1.Divide}
	case 2:
		p.Spec.Division = &v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByEven}
	case 3:
		p.Spec.Groups, p.Spec.Return = []v1alpha1.ClusterGroup{{Name: "first", ClusterSelector: v1alpha1.ClusterSelector{Names: []string{"c0"}}}, {Name: "second"}}, ptr.To(true)
		p.Spec.Division = &v1alpha1.Division{Type: v1alpha1.Divide}
	}
	w.place(v1alpha1.SchemeGroupVersion.WithKind("ClusterPlacementPolicy"), p)
	if err := w.defaulted(p); err != nil {
		t.Fatal(err)
	}
	return w
}

// add adds some Deployments of a class.
func (w *world) add(r *rand.Rand, class string, count int) {
	for i := range count {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", class, i)}}
		if r.IntN(4) == 0 {
			d.Annotations = map[string]string{v1alpha1.AnnotationClusters: fmt.Sprintf("c%d", r.IntN(2))}
		}
		d.Spec.Replicas = ptr.To(1 + r.Int32N(3))
		d.Spec.Template.Spec.PriorityClassName = map[string]string{"middle": "middle", "high": "high"}[class]
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(1+r.Int64N(3), resource.DecimalSI)}}}}
		w.place(appsv1.SchemeGroupVersion.WithKind("Deployment"), d)
	}
}

// flapWorlds is how many worlds are tried; forty times as many have been.
const flapWorlds = 100

// What is of higher priority comes, what has to make room for it goes, and that is that: nobody returns only to be displaced again, nothing of
// the highest priority makes room, and nobody has fewer replicas than before.
func TestPreemptionSettlesAndNeverFlaps(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	displaced, stopped := 0, 0
	for range flapWorlds {
		w := randomWorld(t, r)
		w.add(r, "low", 1+r.IntN(3))
		if err := w.found(); err != nil {
			t.Fatal(err)
		}
		refs, err := w.workloads()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.settle(t.Context(), refs); err != nil {
			t.Fatal(err)
		}
		w.add(r, "middle", r.IntN(2))
		w.add(r, "high", 1+r.IntN(2))
		if refs, err = w.workloads(); err != nil {
			t.Fatal(err)
		}
		history, out := map[engine.Ref][]placement.Decision{}, outcomes{}
		for round := range rounds {
			moved, err := w.round(t.Context(), time.Now(), refs, round == 0, out)
			if err != nil {
				t.Fatal(err)
			}
			if len(moved) == 0 {
				break
			}
			if round == rounds-1 {
				t.Fatalf("it does not settle: %v", moved)
			}
			for ref, result := range moved {
				past := history[ref]
				if len(past) > 0 && past[len(past)-1].Total() > result.Decision.Total() {
					t.Fatalf("%s has %s, and then %s", ref, past[len(past)-1], result.Decision)
				}
				if slices.ContainsFunc(past, result.Decision.Equal) {
					t.Fatalf("%s returns to %s: %v", ref, result.Decision, past)
				}
				history[ref] = append(past, result.Decision)
				if result.MakesWay(out[ref].before) {
					displaced++
				}
			}
		}
		for ref, o := range out {
			stopped += len(o.told)
			kind, object, _ := w.workload(ref)
			if class := kind.Demand(object).Template.Spec.PriorityClassName; class == "high" && (len(o.told) > 0 || o.result.MakesWay(o.before)) {
				t.Fatalf("%s of the highest priority makes room: %q %q", ref, o.told, o.result.Message())
			}
		}
	}
	if displaced < 10 || stopped < 10 {
		t.Errorf("%d were displaced and %d stopped, which is too few to tell anything", displaced, stopped)
	}
}
