package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// TestOrdinalsThatAreNotReadyMoveToo moves a StatefulSet off a cluster whose controller ends no pods, as two are not ready.
func TestOrdinalsThatAreNotReadyMoveToo(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("west")))
	expect.SetRolledOut(s, "db", 3)
	s.West.Unready("db-0", "db-2")
	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.AwaitGone[*appsv1.StatefulSet](s.West, "db")
	expect.SetRolledOut(s, "db", 3)
	framework.AwaitList(s.Logical, "", "an event says which pod was ended", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(framework.EventsAbout(events, "db", "PodEnded"), func(e *corev1.Event) bool {
			return strings.Contains(e.Message, `cluster "west": pod db-2 is ended`)
		})
	})
}

// TestAMoveMakesBeforeItBreaks moves Deployments from cluster to cluster and looks at their ready pods at every moment.
func TestAMoveMakesBeforeItBreaks(t *testing.T) {
	s := suite.Scenario(t)
	for _, test := range []struct {
		name, from, to string
		want           placement.Decision
	}{
		{"whole", "east", "west", placement.Decision{"west": {Replicas: 4}}},
		{"together", "east,west", "west", placement.Decision{"west": {Replicas: 4}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.Subtest(t)
			s.Logical.Apply(manifests.Pinned(manifests.Deployment(test.name, 4), test.from), manifests.ServiceFor(test.name))
			expect.RolledOut(s, test.name, 4)
			awaitEndpoints(s, test.name, 4)
			fewest := expect.WatchReady(s, test.name, 4)
			led, stopWatching := watchEndpoints(s, test.name, 4)
			refusal := askThroughout(s, test.name)
			s.Logical.Kubectl("annotate", "deployment", test.name, v1alpha1.AnnotationClusters+"="+test.to, "--overwrite")
			expect.Shares(s, test.name, test.want)
			expect.RolledOut(s, test.name, 4)
			framework.AwaitList(s.Logical, "app="+test.name, "four pods are left, all in the new cluster", func(pods []*corev1.Pod) bool {
				for _, pod := range pods {
					if pod.Spec.NodeName != test.to {
						return false
					}
				}
				return expect.ReadyPods(4)(pods)
			})
			stopWatching()
			if few := fewest(); few < 4 || *led < 4 {
				t.Errorf("once there were only %d ready pods in all clusters, and %d ready endpoints, want 4 at every moment", few, *led)
			}
			if text := refusal(); text != "" {
				t.Errorf("a request to its Service was refused in the meantime: %s", text)
			}
			awaitEvent(s, test.name, "Moving", "available in west")
			awaitEvent(s, test.name, "Moved", "it runs on west")
		})
	}
	t.Run("what is paused moves as it runs", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Pinned(manifests.Deployment("paused", 2), "east"))
		expect.RolledOut(s, "paused", 2)
		s.Logical.Kubectl("rollout", "pause", "deployment/paused")
		s.Logical.Kubectl("set", "image", "deployment/paused", "web=web:2")
		s.Logical.Kubectl("annotate", "deployment", "paused", v1alpha1.AnnotationClusters+"=west", "--overwrite")
		expect.Shares(s, "paused", placement.Decision{"west": {Replicas: 2}})
		framework.Await(s.West, "paused", "is paused", func(d *appsv1.Deployment) bool { return d.Spec.Paused })
		image := func(want string) func([]*corev1.Pod) bool {
			return func(pods []*corev1.Pod) bool {
				return expect.ReadyPods(2)(pods) && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image != want })
			}
		}
		framework.AwaitList(s.West, "app=paused", "the pods are what they were", image("web:1"))
		s.Logical.Kubectl("rollout", "resume", "deployment/paused")
		expect.RolledOut(s, "paused", 2)
		framework.AwaitList(s.West, "app=paused", "the pods are new", image("web:2"))
	})
	t.Run("a move to where it never becomes ready breaks nothing", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Pinned(manifests.Deployment("stuck", 8), "east"))
		expect.RolledOut(s, "stuck", 8)
		fewest := expect.WatchReady(s, "stuck", 8)
		// In one request it is moved, and its new pods cannot start.
		s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("stuck", 8), func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds = ptr.To[int32](2)
			d.Spec.Template.Spec.Containers[0].Image = "registry.invalid/web:1"
		}), "west"))
		framework.AwaitList(s.West, "app=stuck", "the new pods are there and wait", func(pods []*corev1.Pod) bool {
			return len(pods) > 0 && !expect.Ready(pods[0])
		})
		// What happens at the same time elsewhere shows that there was time to break it.
		s.Logical.Apply(manifests.Pinned(manifests.Deployment("beside", 2), "east,west"))
		expect.RolledOut(s, "beside", 2)
		framework.Await(s.Logical, "stuck", "says which cluster it waits for", func(d *appsv1.Deployment) bool {
			return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
				return c.Reason == "ProgressDeadlineExceeded" && strings.Contains(c.Message, `cluster "west"`)
			})
		})
		awaitEvent(s, "stuck", "MoveStalled", "0 of 8 available in west")
		expect.Says(t, s.Logical.CLI("explain", "deployment/stuck"), "Move:", "0 of 8 available in west", "RUNS", "until replacements are available elsewhere")
		// Its own strategy lets a rollout take away a quarter.
		if few := fewest(); few < 6 {
			t.Errorf("once there were only %d ready pods, want 6 at every moment", few)
		}
		s.Logical.Apply(manifests.Pinned(manifests.Deployment("stuck", 8), "west"))
		expect.Shares(s, "stuck", placement.Decision{"west": {Replicas: 8}})
	})
}

// endpointsOf counts the pods that a Service leads to.
func endpointsOf(service string, slices []*discoveryv1.EndpointSlice) int {
	led := sets.New[types.UID]()
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			if slice.Labels[discoveryv1.LabelServiceName] == service && e.TargetRef != nil && ptr.Deref(e.Conditions.Ready, true) {
				led.Insert(e.TargetRef.UID)
			}
		}
	}
	return led.Len()
}

func awaitEndpoints(s *framework.Scenario, service string, count int) {
	s.Helper()
	framework.AwaitList(s.Logical, "", fmt.Sprintf("Service %s leads to %d pods", service, count), func(slices []*discoveryv1.EndpointSlice) bool {
		return endpointsOf(service, slices) == count
	})
}

// watchEndpoints counts the pods that a Service above leads to at every moment, and returns the smallest number seen.
func watchEndpoints(s *framework.Scenario, service string, want int) (fewest *int, stop func()) {
	s.Helper()
	low := want
	stop = framework.Watch([]*framework.Side{s.Logical}, func(now map[string][]*discoveryv1.EndpointSlice) {
		low = min(low, endpointsOf(service, now[s.Logical.Name]))
	})
	return &low, stop
}

// askThroughout sends one request after the other to a Service above, until refusal is called, which returns the first refusal.
func askThroughout(s *framework.Scenario, service string) (refusal func() string) {
	ctx, cancel := context.WithCancel(s.Context())
	var first string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := s.Logical.Kube.CoreV1().RESTClient().Get().Namespace(s.Namespace).Resource("services").Name(service).SubResource("proxy").Do(ctx).Error()
			if err != nil && ctx.Err() == nil && first == "" {
				first = err.Error()
			}
		}
	}()
	s.Cleanup(cancel)
	return func() string {
		cancel()
		<-done
		return first
	}
}

// awaitEvent waits for an event about an object.
func awaitEvent(s *framework.Scenario, name, reason, message string) {
	s.Helper()
	framework.AwaitList(s.Logical, "", fmt.Sprintf("%s about %s says %q", reason, name, message), func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == name && e.Reason == reason && strings.Contains(e.Message, message)
		})
	})
}
