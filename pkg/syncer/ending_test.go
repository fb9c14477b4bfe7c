package syncer

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
)

// A cluster gives up what is to run elsewhere although its pods are not ready, as one does that returns or is drained because its nodes are ill.
func TestPodsThatTheirControllerDoesNotGetToAreEnded(t *testing.T) {
	above := statefulSet("db", `{"east":{"replicas":3}}`, 3)
	west := func(replicas, counted int32, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		set := projectedSet(above, 0, replicas)
		set.Status.Replicas = counted
		for _, edit := range edits {
			edit(set)
		}
		return set
	}
	for name, test := range map[string]struct {
		live *appsv1.StatefulSet
		goes bool
		want []string
	}{
		"it asks for them no more":       {live: west(0, 3), goes: true, want: []string{"db-2", "db-0"}},
		"it asks for some":               {live: west(1, 3), goes: true, want: []string{"db-2", "db-1"}},
		"its controller counts none":     {live: west(0, 0)},
		"its controller has not seen it": {live: west(0, 3, func(set *appsv1.StatefulSet) { set.Generation++ })},
		"its controller ends all at once": {
			live: west(0, 3, func(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }), goes: true,
		},
		"it is of an earlier object": {live: west(0, 3, func(set *appsv1.StatefulSet) { set.Annotations[v1alpha1.AnnotationUID] = "earlier" })},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, above, namespace("shop")), "west", test.live)
			for _, name := range []string{"db-0", "db-1", "db-2"} {
				pod := podBelow(test.live, name, "")
				pod.Status.Phase = corev1.PodRunning
				if name == "db-1" {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
				if err := s.below.Pods.GetStore().Add(pod); err != nil {
					t.Fatal(err)
				}
			}
			l := s.at(planning.Look{Key: identity.KeyOf(setKind, above), Kind: setKind, Above: above, Live: test.live})
			ending := s.planner.Ending(l)
			if ending.Goes != test.goes {
				t.Errorf("some are on their way: %t, want %t", ending.Goes, test.goes)
			}
			if err := s.pods.End(t.Context(), above, ending.Stuck); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, action := range s.client.(interface{ Actions() []clienttesting.Action }).Actions() {
				if deletion, ok := action.(clienttesting.DeleteAction); ok && action.GetResource() == identity.Pods {
					got = append(got, deletion.GetName())
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("ends %v, want %v", got, test.want)
			}
			if len(test.want) > 0 {
				if said := <-s.events.Events; !strings.Contains(said, `PodEnded cluster "west": pod `+test.want[0]+" is ended") {
					t.Errorf("tells %q", said)
				}
			}
		})
	}
}
