package faults

import (
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
)

// A silent cluster may still run what it ran. Nobody else may, however little manifold itself remembers.
func TestOrdinalsOfASilentClusterStartNowhereElse(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("west")), manifests.Database("other", 2, manifests.SetOn("east")))
	expect.SetRolledOut(s, "db", 3)
	expect.SetRolledOut(s, "other", 2)

	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "west", "is silent", membership.Readiness(metav1.ConditionUnknown))
	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	still := func(when string) {
		framework.Await(s.East, "db", "has no ordinal "+when, func(set *appsv1.StatefulSet) bool { return *set.Spec.Replicas == 0 })
		framework.AwaitList(s.Logical, "", "an event tells what is waited for", func(events []*corev1.Event) bool {
			return slices.ContainsFunc(events, func(e *corev1.Event) bool {
				return e.Reason == "WaitingForCluster" && strings.Contains(e.Message, `to stop in cluster "west"`)
			})
		})
		if set := framework.Await(s.Logical, "db", "is decided about anew", func(set *appsv1.StatefulSet) bool {
			return set.Annotations[v1alpha1.AnnotationPlacement] == `{"east":{"replicas":3}}`
		}); set.Status.UpdatedReplicas != 0 {
			t.Errorf("%d replicas count as updated, want none while they are where they should leave", set.Status.UpdatedReplicas)
		}
	}
	still("while the other cluster is silent")
	// A new process knows no more than what is written down.
	if err := s.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What nobody else has is not held up.
	s.Logical.Kubectl("scale", "statefulset/other", "--replicas=3")
	expect.SetRolledOut(s, "other", 3)
	still("after a restart")

	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	expect.Pods(s.East, "app=db", manifests.Ordinals("db", 0, 3))
	framework.AwaitGone[*appsv1.StatefulSet](s.West, "db")
	expect.SetRolledOut(s, "db", 3)
}
