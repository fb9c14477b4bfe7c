package placement

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// undisturbed returns an exclusive scenario for a test that depends on what clusters have free: what earlier tests ran there is gone, and is not counted any more.
func undisturbed(t *testing.T) *framework.Scenario {
	t.Helper()
	s := suite.Exclusive(t)
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitList(side.In(metav1.NamespaceAll), "", "the pods of earlier tests are gone", expect.Nothing[*corev1.Pod])
		framework.Await(s.Logical, side.Name, "counts none of them any more", func(c *v1alpha1.Cluster) bool { return c.Status.Requested.Cpu().IsZero() })
	}
	return s
}

// asking sets what each pod of a Deployment asks for.
func asking(manifest, cpu string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	})
}

// ballast uses up processors of a cluster, until the test ends.
func ballast(t *testing.T, cluster string, pods int, cpu string) {
	t.Helper()
	s := suite.Exclusive(t)
	requested := func() int64 {
		c, err := s.Environment.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(s.Context(), cluster, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c.Status.Requested.Cpu().MilliValue()
	}
	before := requested()
	size := resource.MustParse(cpu)
	size.Mul(int64(pods))
	s.Logical.Apply(manifests.Pinned(asking(manifests.Deployment("ballast", pods), cpu), cluster))
	expect.RolledOut(s, "ballast", int32(pods))
	framework.Await(s.Logical, cluster, "counts the ballast", func(c *v1alpha1.Cluster) bool {
		return c.Status.Requested.Cpu().MilliValue() >= before+size.MilliValue()
	})
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "delete", "deployment", "ballast", "--namespace", s.Namespace, "--timeout=60s")
	})
}

func TestANamespaceStaysTogetherOnTheClusterWithMostFreeCapacity(t *testing.T) {
	first := undisturbed(t)
	ballast(t, "east", 2, "20")
	burst(first, 8)
	for i := range 8 {
		d := expect.RolledOut(first, fmt.Sprintf("web-%d", i), 2)
		if !expect.PlacedOn(first, "west")(d) {
			t.Errorf("%s is on %s, want west, which had most free capacity", d.Name, framework.DecisionOf(first, d))
		}
	}
	framework.AwaitGone[*corev1.Namespace](first.East, first.Namespace)

	ballast(t, "west", 3, "25")
	second := suite.Exclusive(t)
	burst(second, 4)
	for i := range 4 {
		d := expect.RolledOut(second, fmt.Sprintf("web-%d", i), 2)
		if !expect.PlacedOn(second, "east")(d) {
			t.Errorf("%s is on %s, want east, which has most free capacity now", d.Name, framework.DecisionOf(second, d))
		}
	}
	// The first namespace stays where it began.
	first.Logical.Apply(manifests.Deployment("late", 2))
	if d := expect.RolledOut(first, "late", 2); !expect.PlacedOn(first, "west")(d) {
		t.Errorf("a late Deployment is on %s, want west, where its neighbours are", framework.DecisionOf(first, d))
	}
}

// burst creates Deployments of two replicas all at once.
func burst(s *framework.Scenario, count int) {
	s.Helper()
	var group errgroup.Group
	for i := range count {
		group.Go(func() error {
			d := &appsv1.Deployment{}
			if err := yaml.UnmarshalStrict([]byte(manifests.Deployment(fmt.Sprintf("web-%d", i), 2)), d); err != nil {
				return err
			}
			_, err := s.Environment.Logical.Kube.AppsV1().Deployments(s.Namespace).Create(s.Context(), d, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
}

func TestOnlyWhatDoesNotFitGoesElsewhereAndAnEventSaysSo(t *testing.T) {
	s := undisturbed(t)
	s.Logical.Apply(manifests.Deployment("web", 2))
	home := framework.DecisionOf(s, expect.RolledOut(s, "web", 2)).Clusters()[0]
	s.Logical.Apply(asking(manifests.Deployment("big", 30), "4"))
	got := framework.DecisionOf(s, framework.ReadDeployment(s, "big"))
	if got.Total() != 30 || len(got) != 2 || got[home].Replicas < 20 {
		t.Errorf("30 replicas of 4 processors each are placed on %s, want as many as fit on %s and the rest elsewhere", got, home)
	}
	events := framework.AwaitList(s.Logical, "", "an event says what is not at home", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, "big", "PlacementNote")) > 0
	})
	for _, e := range framework.EventsAbout(events, "big", "PlacementNote") {
		expect.Says(t, e.Message, "kept together on "+home, "are not there", "lacks cpu (need 4, free ")
	}
	s.Logical.Kubectl("delete", "deployment", "big", "--timeout=60s")
}
