package syncer

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// errand is a pod that a user made, as it is above: decided to run in one cluster, while another one, if any, has it and no node for it.
func errand(decided, has string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: objectMeta("web-1")}
	pod.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"` + decided + `":{"replicas":1}}`}
	if has != "" {
		pod.Annotations[v1alpha1.AnnotationPodUID] = "below"
		pod.Annotations[v1alpha1.AnnotationPodCluster] = has
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}
	return pod
}

// taskBelow is what a cluster has of it.
func taskBelow(t *testing.T, above *corev1.Pod, node string) *corev1.Pod {
	t.Helper()
	kind, _ := projection.ForResource(podResource)
	out, err := kind.Project(above, projection.Part{}, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	pod := out.(*corev1.Pod)
	pod.UID, pod.Spec.NodeName, pod.Status = "below", node, above.Status
	if node != "" {
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	}
	return pod
}

func TestAPodThatWaitsIsInOneClusterAtATime(t *testing.T) {
	deleted := errand("west", "east")
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{}, []string{"x"}
	kept := errand("east", "")
	kept.DeletionTimestamp, kept.Finalizers, kept.Spec.NodeName = &metav1.Time{}, []string{"x"}, "east"
	bound := errand("west", "")
	bound.Annotations[v1alpha1.AnnotationPodUID], bound.Spec.NodeName = "below", "east"
	for name, test := range map[string]struct {
		above *corev1.Pod
		there bool   // in east
		node  string // there
		left  bool   // it was deleted there to run elsewhere
		// stranger is that somebody else has a pod of its name there.
		stranger bool
		want     string // what is written above: "has", "runs", "gone" below, "deleted", or nothing
	}{
		"one that waits says where it waits":              {above: errand("east", ""), there: true, want: "has"},
		"one that is about to leave is not reported":      {above: errand("west", "east"), there: true},
		"one that has left is let go":                     {above: errand("west", "east"), want: "gone"},
		"also if it is to come back":                      {above: errand("east", "east"), left: true, want: "gone"},
		"one that somebody deletes in its cluster ends":   {above: errand("east", "east"), want: "deleted"},
		"one that gets a node after all runs there":       {above: errand("west", "east"), there: true, node: "node-1", want: "runs"},
		"one that ran there and is gone has ended":        {above: bound, left: true, want: "deleted"},
		"one that another cluster has is that one's":      {above: errand("east", "west")},
		"one that is deleted while it leaves ends":        {above: deleted, want: "deleted"},
		"one that is still to be made has not ended":      {above: errand("east", "")},
		"one that is to run elsewhere and is not here is": {above: errand("west", "")},
		"one that a stranger keeps from being made waits": {above: errand("east", ""), stranger: true},
		"and ends when it is deleted, stranger or not":    {above: kept, stranger: true, want: "deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			var below []projection.Object
			if test.there {
				below = append(below, taskBelow(t, test.above, test.node))
			}
			if test.stranger {
				below = append(below, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "stranger"}})
			}
			s := attach(t, newUpstream(t, test.above, namespace("shop")), "east", below...)
			if err := s.above.Tracker().Add(test.above); err != nil {
				t.Fatal(err)
			}
			if test.left {
				s.pods.Leave(test.above.UID)
			}
			if err := s.pods.Sync(t.Context(), podName); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, action := range s.above.Actions() {
				if action.GetVerb() == "delete" {
					got = "deleted"
					continue
				}
				pod := action.(clienttesting.UpdateAction).GetObject().(*corev1.Pod)
				switch _, made := pod.Annotations[v1alpha1.AnnotationPodUID]; {
				case !made && pod.Annotations[v1alpha1.AnnotationPodCluster] == "" && len(pod.Status.Conditions) == 0:
					got = "gone"
				case made && pod.Spec.NodeName == "east" && pod.Annotations[v1alpha1.AnnotationPodCluster] == "":
					got = "runs"
				case made && pod.Spec.NodeName == "" && pod.Annotations[v1alpha1.AnnotationPodCluster] == "east":
					got = "has"
				}
			}
			if got != test.want {
				t.Errorf("above it is %q, want %q: %v", got, test.want, s.above.Actions())
			}
		})
	}
}

func TestAClusterWaitsForAPodToBeGoneElsewhere(t *testing.T) {
	key := identity.Key{Resource: podResource, Namespace: "shop", Name: "web-1"}
	for name, test := range map[string]struct {
		above *corev1.Pod
		want  string
	}{
		"that another one has":      {errand("east", "west"), `Normal WaitingForCluster cluster "east" waits for the pod to stop in cluster "west", which has no node for it`},
		"not that it has itself":    {errand("east", "east"), ""},
		"nor that is for others":    {errand("north", "west"), ""},
		"nor that none has had yet": {errand("north", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, test.above, namespace("shop")), "east")
			for range 2 { // told once
				if err := s.sync(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for len(s.events.Events) > 0 {
				got = append(got, <-s.events.Events)
			}
			if want := strings.Join(got, "\n"); want != test.want {
				t.Errorf("events %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatLeavesAClusterIsAPodThatWaits(t *testing.T) {
	kind, _ := projection.ForResource(podResource)
	other := errand("west", "east")
	other.UID = "another"
	deleted := errand("west", "east")
	deleted.DeletionTimestamp = &metav1.Time{}
	nowhere := errand("west", "east")
	delete(nowhere.Annotations, v1alpha1.AnnotationPlacement)
	for name, test := range map[string]struct {
		above *corev1.Pod
		want  bool
	}{
		"one that is to run elsewhere":  {errand("west", "east"), true},
		"not one that stays":            {errand("east", "east"), false},
		"nor one that another one has":  {errand("west", "west"), false},
		"nor another one of that name":  {other, false},
		"nor one that is being deleted": {deleted, false},
		"nor one that is to be nowhere": {nowhere, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, test.above), "east")
			if got := s.planner.GoesElsewhere(kind, test.above, taskBelow(t, errand("west", "east"), "")); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
	// The scheduler may be faster: then nothing is deleted, and it is reported.
	s := attach(t, newUpstream(t, errand("west", "east")), "east")
	if err := s.leave(t.Context(), kind, errand("west", "east"), taskBelow(t, errand("west", "east"), "node-1")); err != nil {
		t.Fatal(err)
	}
	if name, _ := s.pods.Queue.Get(); name != podName {
		t.Errorf("looked at is %s, want the pod", name)
	}
	if actions := s.client.(interface{ Actions() []clienttesting.Action }).Actions(); slices.ContainsFunc(actions, func(a clienttesting.Action) bool { return a.GetVerb() == "delete" }) {
		t.Errorf("a pod that has a node is deleted: %v", actions)
	}
}
