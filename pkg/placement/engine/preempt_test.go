package engine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
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
	low := placed("low", on("west", 2))
	low.Annotations[v1alpha1.AnnotationStatus] = `{"west":{"replicas":2}}`
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
	if got, want := strings.Join(result.Notes, "; "), "it takes room of lower priority on west (Deployment shop/low)"; got != want {
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
