package syncer

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// leftPod is a pod above that an earlier StatefulSet "db" left behind in east.
func leftPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := ownOf(&corev1.Pod{ObjectMeta: objectMeta(name)}, `{"east":{"replicas":1}}`)
	pod.Labels = map[string]string{"app": "db"}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// selecting is a StatefulSet that is placed as a decision says and takes pods labelled app=db.
func selecting(decision string) *appsv1.StatefulSet {
	set := statefulSet("db", decision, 1)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	return set
}

func TestAStatefulSetEndsWhatAnEarlierOneLeftBehind(t *testing.T) {
	west := selecting(`{"west":{"replicas":1}}`)
	for name, test := range map[string]struct {
		above *appsv1.StatefulSet
		pod   *corev1.Pod
		// others are left behind beside it.
		others []projection.Object
		want   bool
	}{
		"where it is not placed":               {above: west, pod: leftPod("db-3"), want: true},
		"what it has elsewhere":                {above: west, pod: leftPod("db-0"), want: true},
		"but not what has no place yet":        {above: selecting(""), pod: leftPod("db-0")},
		"but nothing beside what has no place": {above: selecting(""), pod: leftPod("db-3"), others: []projection.Object{leftPod("db-0")}},
		"too many, without a place":            {above: selecting(""), pod: leftPod("db-3"), want: true},
		"but not where it is placed":           {above: selecting(`{"east":{"replicas":1}}`), pod: leftPod("db-3")},
		"but nothing of another name":          {above: west, pod: leftPod("db-three")},
		"but nothing of a longer name":         {above: west, pod: leftPod("db-a-3")},
		"but nothing that it does not select":  {above: west, pod: leftPod("db-3", func(p *corev1.Pod) { p.Labels["app"] = "web" })},
		"but nothing that somebody controls":   {above: west, pod: leftPod("db-3", func(p *corev1.Pod) { p.OwnerReferences = controlledBy(west, "StatefulSet") })},
		"but nothing that is going anyway":     {above: west, pod: leftPod("db-3", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} })},
		"but nothing in a cluster that has none": {above: west, pod: leftPod("db-3", func(p *corev1.Pod) {
			p.Annotations[v1alpha1.AnnotationPlacement] = `{"north":{"replicas":1}}`
		})},
		"but nothing that only a cluster speaks of": {above: west, pod: leftPod("db-3", func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.AnnotationCluster: "east"}
		})},
		"unless it goes itself": {above: func() *appsv1.StatefulSet {
			set := west.DeepCopy()
			set.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			return set
		}(), pod: leftPod("db-3")},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, append(test.others, test.above, test.pod, namespace("shop"))...), "east")
			if got := s.Upstream.Demand.LeftBehind(identity.Workload{Kind: setKind, Object: test.above}, s.cluster); got != test.want {
				t.Errorf("left behind: %t, want %t", got, test.want)
			}
			if decided := identity.DecisionOf(test.above)["east"]; decided.Replicas > 0 || test.above.DeletionTimestamp != nil {
				return
			}
			desired, _, err := s.desired(setKind, test.above, nil)
			if err != nil || (desired != nil) != test.want {
				t.Fatalf("projects %v, %v; want it: %t", desired, err, test.want)
			}
			if test.want && *desired.(*appsv1.StatefulSet).Spec.Replicas != 0 {
				t.Errorf("asks for %d replicas, want none", *desired.(*appsv1.StatefulSet).Spec.Replicas)
			}
		})
	}
}

// It comes for what is left behind, and goes once that is gone, whichever of the watches is first.
func TestWhatIsLeftBehindWakesItsStatefulSet(t *testing.T) {
	set, pod := selecting(`{"west":{"replicas":1}}`), leftPod("db-3")
	controlled := leftPod("db-3", func(p *corev1.Pod) { p.OwnerReferences = controlledBy(set, "StatefulSet") })
	mirror := mirrorOf(pod, "east")
	pods, _ := projection.ForResource(podResource)
	for name, test := range map[string]struct {
		route func(u *Upstream)
		want  bool
	}{
		"the set is made":     {func(u *Upstream) { u.router.Route(setKind, nil, set) }, true},
		"the pod is left":     {func(u *Upstream) { u.router.Route(pods, mirror, pod) }, true},
		"the pod is gone":     {func(u *Upstream) { u.router.Route(pods, pod, nil) }, true},
		"the pod is not left": {func(u *Upstream) { u.router.Route(pods, nil, controlled) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, set, pod, namespace("shop"))
			east, north := attach(t, u, "east"), attach(t, u, "north")
			test.route(u)
			if got := slices.Contains(east.enqueued(), "statefulsets shop/db"); got != test.want {
				t.Errorf("east looks at it: %t, want %t", got, test.want)
			}
			if slices.Contains(north.enqueued(), "statefulsets shop/db") {
				t.Error("north looks at it, which has nothing of it")
			}
		})
	}
	s := attach(t, newUpstream(t, set, pod, namespace("shop")), "east")
	if s.enqueueEverything(); !slices.Contains(s.enqueued(), "statefulsets shop/db") {
		t.Error("it is not looked at after a start")
	}
}
