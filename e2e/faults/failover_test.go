package faults

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// impatient lets workloads stay on a silent cluster for so short a time that a test can wait for it.
const impatient = `apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: impatient
spec:
  workloads:
    labelSelector:
      matchLabels: {loss: tolerated}
  tolerations:
  - key: manifold.dev/unreachable
    operator: Exists
    effect: NoExecute
    tolerationSeconds: 2
`

func losable(d *appsv1.Deployment) { d.Labels = map[string]string{"loss": "tolerated"} }

// TestWhatASilentClusterRanIsPlacedElsewhere loses a cluster for longer than is tolerated, and has it back.
func TestWhatASilentClusterRanIsPlacedElsewhere(t *testing.T) {
	s := suite.Fragile(t)
	s.Logical.Apply(impatient)
	s.Logical.Apply(
		manifests.Edited(manifests.Pinned(manifests.Deployment("both", 4), "east,west"), losable), manifests.Edited(manifests.Pinned(manifests.Deployment("far", 3), "west,east"), losable),
		manifests.Pinned(manifests.Deployment("patient", 2), "west"),
		manifests.Database("db", 3, manifests.SetOn("west"), func(set *appsv1.StatefulSet) { set.Labels = map[string]string{"loss": "tolerated"} }))
	for name, replicas := range map[string]int32{"both": 4, "far": 3, "patient": 2} {
		expect.RolledOut(s, name, replicas)
	}
	expect.SetRolledOut(s, "db", 3)
	// From now on it may run in both.
	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	// Scaled down, its controller would wait for ever with two that are not ready.
	s.West.Unready("db-0", "db-2")
	patient := framework.PodUIDs(s, s.West, "patient")

	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	// Started anew, it does not meet that cluster, and has to go by what it has noted.
	manifold := s.Environment.Manifold
	if err := errors.Join(manifold.Kill(), manifold.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "west", "is silent", membership.Readiness(metav1.ConditionUnknown))
	for name, replicas := range map[string]int32{"both": 4, "far": 3} {
		framework.Await(s.Logical, name, "is placed elsewhere", expect.PlacedOn(s, "east"))
		d := expect.RolledOut(s, name, replicas)
		if d.Status.Replicas != replicas {
			t.Errorf("%s has %d replicas, want %d: those that nobody hears of do not count", name, d.Status.Replicas, replicas)
		}
		framework.AwaitList(s.Logical, "app="+name, "its ReplicaSet counts the same", func(sets []*appsv1.ReplicaSet) bool {
			return len(sets) == 1 && *sets[0].Spec.Replicas == replicas && sets[0].Status.ReadyReplicas == replicas
		})
	}
	// Whoever asks for a replica by its name gets the one that runs.
	expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 3))
	framework.AwaitList(s.Logical, "app=db", "those that run are shown", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(3)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != "east" })
	})
	framework.AwaitList(s.Logical, "app=far", "no others are shown", func(pods []*corev1.Pod) bool { return len(pods) == 3 && expect.ReadyPods(3)(pods) })
	framework.AwaitList(s.Logical, "", "an event says why", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == "both" && strings.Contains(e.Message, `moved off cluster "west", which has been unreachable for longer than is tolerated`)
		})
	})
	if got := framework.DecisionOf(s, framework.ReadDeployment(s, "patient")); !got.Equal(placement.Decision{"west": {Replicas: 2}}) {
		t.Errorf("what is to wait for longer is placed on %s", got)
	}

	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "west", "is ready", membership.Readiness(metav1.ConditionTrue))
	// It has given up what others run before it counts as ready.
	givenUp(s, "db")
	for name := range map[string]int32{"both": 4, "far": 3} {
		framework.AwaitGone[*appsv1.Deployment](s.West, name)
	}
	framework.AwaitGone[*appsv1.StatefulSet](s.West, "db")
	expect.SetRolledOut(s, "db", 3)
	expect.RolledOut(s, "patient", 2)
	if got := framework.PodUIDs(s, s.West, "patient"); !slices.Equal(got, patient) {
		t.Errorf("the pods of what was to wait were %v and are %v", patient, got)
	}
}

// givenUp checks, now that a cluster that was lost counts as ready again, that it runs none of what another one runs.
func givenUp(s *framework.Scenario, name string) {
	s.Helper()
	list, err := s.West.Kube.CoreV1().Pods(s.Namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		s.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			s.Errorf("west counts as ready and still runs %s, which east runs", pod.Name)
		}
	}
}
