package expect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// NamespaceIn runs something in a cluster, so that the scenario's namespace exists there.
func NamespaceIn(s *framework.Scenario, side *framework.Side) {
	s.Helper()
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("first", 1), side.Name))
	RolledOut(s, "first", 1)
}

// Shares waits until each cluster runs its share of what was decided, all of it is available, and the others run nothing.
func Shares(s *framework.Scenario, name string, want placement.Decision) {
	s.Helper()
	for _, side := range []*framework.Side{s.East, s.West} {
		share, has := want[side.Name]
		if !has {
			framework.AwaitGone[*appsv1.Deployment](side, name)
			continue
		}
		framework.Await(side, name, fmt.Sprintf("runs its share of %d", share.Replicas), func(d *appsv1.Deployment) bool {
			return *d.Spec.Replicas == share.Replicas && d.Status.AvailableReplicas == share.Replicas
		})
	}
}

// PlacedOn claims that a Deployment is decided to run on exactly these clusters, with all of its replicas.
func PlacedOn(s *framework.Scenario, clusters ...string) func(*appsv1.Deployment) bool {
	slices.Sort(clusters)
	return func(d *appsv1.Deployment) bool {
		got := framework.DecisionOf(s, d)
		return slices.Equal(slices.Sorted(maps.Keys(got)), clusters) && got.Total() == int64(*d.Spec.Replicas)
	}
}

// Unplaced waits until a Deployment tells in every place that it is not placed, and checks that each gives the reasons.
func Unplaced(s *framework.Scenario, name string, want ...string) {
	s.Helper()
	d := framework.Await(s.Logical, name, "says that it is not placed", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentProgressing).Reason == "Unplaced" && d.Status.ObservedGeneration == d.Generation
	})
	if c := framework.ConditionOf(d, appsv1.DeploymentProgressing); c.Status != corev1.ConditionFalse {
		s.Errorf("condition %+v, want False", c)
	}
	if got := framework.DecisionOf(s, d); len(got) > 0 {
		s.Errorf("it is placed on %s", got)
	}
	Says(s.T, framework.ConditionOf(d, appsv1.DeploymentProgressing).Message, want...)
	events := framework.AwaitList(s.Logical, "", "an event says why", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, name, "Unplaced")) > 0
	})
	Says(s.T, framework.EventsAbout(events, name, "Unplaced")[0].Message, want...)
	Says(s.T, s.Logical.CLI("explain", "deployment/"+name), append(want, "Placed:     nowhere")...)
	Says(s.T, s.Logical.Kubectl("describe", "deployment", name), append(want, "Unplaced")...)
}

// Problem waits until a Deployment says in its status that a cluster cannot hold it, and checks that event, breakdown and
// explanation say it too.
func Problem(s *framework.Scenario, name, reason string, want ...string) {
	s.Helper()
	d := framework.Await(s.Logical, name, "says what is the matter", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentProgressing).Reason == "NotApplied"
	})
	if c := framework.ConditionOf(d, appsv1.DeploymentProgressing); c.Status != corev1.ConditionFalse {
		s.Errorf("condition %+v, want False", c)
	}
	Says(s.T, framework.ConditionOf(d, appsv1.DeploymentProgressing).Message, want...)
	Says(s.T, d.Annotations[v1alpha1.AnnotationStatus], want...)
	events := framework.AwaitList(s.Logical, "", "an event says what is the matter", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, name, reason)) > 0
	})
	found := framework.EventsAbout(events, name, reason)
	Says(s.T, found[len(found)-1].Message, want...)
	Says(s.T, s.Logical.CLI("explain", "deployment/"+name), want...)
	Says(s.T, s.Logical.Kubectl("describe", "deployment", name), append(want, reason)...)
}

// PolicyFollowed waits until a new StatefulSet would be divided: admission sees policies by watch.
func PolicyFollowed(s *framework.Scenario) {
	s.Helper()
	s.Logical.Poll("the policy is followed", func() error {
		got := s.Logical.KubectlInput(manifests.Database("probe", 2), "apply", "--dry-run=server", "-f", "-",
			"-o", "jsonpath={.items[0].metadata.annotations['manifold\\.dev/placement']}")
		if !strings.Contains(got, "east") || !strings.Contains(got, "west") {
			return fmt.Errorf("placed on %q", got)
		}
		return nil
	})
}
