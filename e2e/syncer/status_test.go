package syncer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func TestOneStatusTellsOfAllClusters(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 6), "east,west"))
	d := expect.RolledOut(s, "web", 6)
	if d.Annotations["deployment.kubernetes.io/revision"] != "1" {
		t.Errorf("revision %q, want 1", d.Annotations["deployment.kubernetes.io/revision"])
	}
	if d.Status.UnavailableReplicas != 0 {
		t.Errorf("%d replicas are said to be unavailable", d.Status.UnavailableReplicas)
	}
	for of, want := range map[appsv1.DeploymentConditionType]appsv1.DeploymentCondition{
		appsv1.DeploymentAvailable:   {Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
		appsv1.DeploymentProgressing: {Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	} {
		if got := framework.ConditionOf(d, of); got.Status != want.Status || got.Reason != want.Reason || got.LastTransitionTime.IsZero() {
			t.Errorf("condition %s is %+v, want %s for %s", of, got, want.Status, want.Reason)
		}
	}
	breakdown, err := summary.ParseBreakdown(d.Annotations[v1alpha1.AnnotationStatus])
	if err != nil {
		t.Fatal(err)
	}
	for cluster, share := range framework.DecisionOf(s, d) {
		if got := breakdown[cluster]; got.Ready != share.Replicas || got.Available != share.Replicas || got.Generation != d.Generation {
			t.Errorf("the breakdown says of %s %+v, want %d ready", cluster, got, share.Replicas)
		}
	}
}

// TestTheGenerationIsObservedOnceEveryClusterHas is what "rollout status" and "helm --wait" rely on.
func TestTheGenerationIsObservedOnceEveryClusterHas(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"))
	expect.RolledOut(s, "web", 4)
	stop := framework.Watch([]*framework.Side{s.Logical}, func(now map[string][]*appsv1.Deployment) {
		for _, d := range now[s.Logical.Name] {
			if d.Status.ObservedGeneration < d.Generation {
				continue
			}
			breakdown, err := summary.ParseBreakdown(d.Annotations[v1alpha1.AnnotationStatus])
			if err != nil {
				t.Error(err)
			}
			for cluster, status := range breakdown {
				if status.Generation != d.Generation {
					t.Errorf("generation %d is observed, but %s has only seen %d", d.Generation, cluster, status.Generation)
				}
			}
		}
	})
	for i := range 5 {
		s.Logical.Kubectl("set", "image", "deployment/web", fmt.Sprintf("web=web:%d", i+2))
		s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
		for _, side := range []*framework.Side{s.East, s.West} {
			d, err := side.Kube.AppsV1().Deployments(s.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("web:%d", i+2); framework.ImageOf(d) != want || !expect.Available(*d.Spec.Replicas)(d) {
				t.Errorf("it reads as rolled out, but %s has image %s and status %+v", side.Name, framework.ImageOf(d), d.Status)
			}
		}
	}
	stop()
}

func TestAWholeThatIsNotAvailableSaysSo(t *testing.T) {
	s := suite.Scenario(t)
	broken := manifests.Edited(manifests.Deployment("web", 4), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "registry.invalid/web:1"
		d.Spec.ProgressDeadlineSeconds = new(int32)
		*d.Spec.ProgressDeadlineSeconds = 2
	})
	s.Logical.Apply(manifests.Pinned(broken, "east,west"))
	d := framework.Await(s.Logical, "web", "says that it does not get on", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentProgressing).Reason == "ProgressDeadlineExceeded"
	})
	if d.Status.Replicas != 4 || d.Status.ReadyReplicas != 0 || d.Status.UnavailableReplicas != 4 {
		t.Errorf("status %+v, want four replicas of which none is ready", d.Status)
	}
	if c := framework.ConditionOf(d, appsv1.DeploymentAvailable); c.Status != corev1.ConditionFalse || c.Reason != "MinimumReplicasUnavailable" {
		t.Errorf("condition %+v, want it not available", c)
	}
	expect.Refused(t, s.Logical.Try("rollout", "status", "deployment/web", "--timeout=60s"), "exceeded its progress deadline")
	pods := framework.AwaitList(s.Logical, "app=web", "the pods tell what they wait for", func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
				return false
			}
		}
		return len(pods) == 4
	})
	if reason := pods[0].Status.ContainerStatuses[0].State.Waiting.Reason; reason != "ImagePullBackOff" {
		t.Errorf("the pods wait for %q, want ImagePullBackOff", reason)
	}
	expect.Says(t, s.Logical.Kubectl("describe", "pod", pods[0].Name), "Failed to pull image", "ImagePullBackOff")
	expect.Says(t, s.Logical.Kubectl("get", "pods"), "ImagePullBackOff")
}

func TestReplicasThatTheClustersRefuseAreReported(t *testing.T) {
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	s.East.Kubectl("create", "quota", "none", "--hard=pods=1")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east"))
	d := framework.Await(s.Logical, "web", "tells that pods cannot be made", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentReplicaFailure).Status == corev1.ConditionTrue
	})
	expect.Says(t, framework.ConditionOf(d, appsv1.DeploymentReplicaFailure).Message, "east", "exceeded quota: none")
	framework.AwaitList(s.Logical, "", "an event of the ReplicaSet says it too", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Kind == "ReplicaSet" && e.Reason == "FailedCreate"
		})
	})
	s.East.Kubectl("delete", "quota", "none")
	s.Logical.Kubectl("rollout", "restart", "deployment/web")
	expect.RolledOut(s, "web", 2)
}

func TestALoadBalancerCollectsTheAddressesOfAllClusters(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"), `
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  type: LoadBalancer
  selector:
    app: web
  ports:
  - port: 80
`)
	expect.RolledOut(s, "web", 4)
	for side, ingress := range map[*framework.Side]string{
		s.East: `[{"ip":"192.0.2.1"}]`, s.West: `[{"ip":"192.0.2.2"},{"hostname":"west.example.com"}]`,
	} {
		framework.Await(side, "web", "is there", framework.Exists[*corev1.Service])
		side.Kubectl("patch", "service", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":`+ingress+`}}}`)
	}
	points := func(svc *corev1.Service) string {
		var out []string
		for _, p := range svc.Status.LoadBalancer.Ingress {
			out = append(out, p.IP+p.Hostname)
		}
		slices.Sort(out)
		return fmt.Sprint(out)
	}
	framework.Await(s.Logical, "web", "has the addresses of both clusters", func(svc *corev1.Service) bool {
		return points(svc) == "[192.0.2.1 192.0.2.2 west.example.com]"
	})
	expect.Says(t, s.Logical.Kubectl("get", "service", "web"), "192.0.2.1", "192.0.2.2", "west.example.com")

	s.East.Kubectl("patch", "service", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":null}}}`)
	framework.Await(s.Logical, "web", "has lost the address that is gone", func(svc *corev1.Service) bool {
		return points(svc) == "[192.0.2.2 west.example.com]"
	})
	s.Logical.Kubectl("annotate", "service", "web", v1alpha1.AnnotationDrainSeconds+"=0") // else it waits for an address of east
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.Await(s.Logical, "web", "has lost the addresses of the cluster that it left", func(svc *corev1.Service) bool {
		return points(svc) == "[]"
	})
}

func TestServicesKeepTheirOwnAddresses(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.App)
	expect.RolledOut(s, "web", 2)
	above, err := s.Logical.Kube.CoreV1().Services(s.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	below := framework.Await(s.East, "web", "is there", framework.Exists[*corev1.Service])
	if above.Spec.ClusterIP == "" || below.Spec.ClusterIP == "" || below.Spec.ClusterIP == "None" {
		t.Errorf("addresses %q above and %q below, want each to have one", above.Spec.ClusterIP, below.Spec.ClusterIP)
	}
	// A change of type and back works as on any cluster.
	s.Logical.Kubectl("patch", "service", "web", "-p", `{"spec":{"type":"NodePort"}}`)
	framework.Await(s.East, "web", "has a port on nodes", func(svc *corev1.Service) bool { return svc.Spec.Ports[0].NodePort != 0 })
	s.Logical.Kubectl("patch", "service", "web", "-p", `{"spec":{"type":"ClusterIP"}}`)
	framework.Await(s.East, "web", "is inside the cluster again", func(svc *corev1.Service) bool {
		return svc.Spec.Type == corev1.ServiceTypeClusterIP && svc.Spec.ClusterIP == below.Spec.ClusterIP
	})
}

func TestAServiceShowsWhatServesIt(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.App)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	expect.RolledOut(s, "web", 4)
	var want []string
	for _, pod := range framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(4)) {
		want = append(want, pod.Status.PodIP)
	}
	slices.Sort(want)
	framework.AwaitList(s.Logical, "kubernetes.io/service-name=web", "the pods of both clusters serve it", func(found []*discoveryv1.EndpointSlice) bool {
		var got []string
		for _, slice := range found {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					got = append(got, endpoint.Addresses...)
				}
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	expect.Says(t, s.Logical.Kubectl("describe", "service", "web"), "Endpoints:", ":8080,")
}

func TestTheBreakdownIsCompact(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	d := expect.RolledOut(s, "web", 2)
	var entries map[string]map[string]any
	if err := json.Unmarshal([]byte(d.Annotations[v1alpha1.AnnotationStatus]), &entries); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(entries)); !slices.Equal(got, []string{"east", "west"}) {
		t.Errorf("the breakdown tells of %q, want east and west", got)
	}
	if size := len(d.Annotations[v1alpha1.AnnotationStatus]); size > 200 {
		t.Errorf("the breakdown of two clusters takes %d bytes", size)
	}
}
