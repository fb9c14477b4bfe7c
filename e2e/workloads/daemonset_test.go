package workloads

import (
	"fmt"
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
	"github.com/manifold-dev/manifold/pkg/summary"
)

// onNodes claims that the whole DaemonSet is rolled out to that many nodes.
func onNodes(nodes int32) func(*appsv1.DaemonSet) bool {
	return func(ds *appsv1.DaemonSet) bool {
		s := ds.Status
		return s.ObservedGeneration >= ds.Generation && s.DesiredNumberScheduled == nodes && s.CurrentNumberScheduled == nodes &&
			s.UpdatedNumberScheduled == nodes && s.NumberReady == nodes && s.NumberAvailable == nodes && s.NumberUnavailable == 0 &&
			s.NumberMisscheduled == 0
	}
}

// nodesOf counts the nodes of a cluster.
func nodesOf(s *framework.Scenario, side *framework.Side) int32 {
	s.Helper()
	nodes, err := side.Kube.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return int32(len(nodes.Items))
}

func chosen(s *framework.Scenario, ds *appsv1.DaemonSet) []string {
	s.Helper()
	d, err := placement.ParseDecision(ds.Annotations[v1alpha1.AnnotationPlacement])
	if err != nil {
		s.Fatal(err)
	}
	return d.Clusters()
}

func TestADaemonSetRunsOnEveryNodeOfEveryCluster(t *testing.T) {
	s := suite.Scenario(t)
	east, west := nodesOf(s, s.East), nodesOf(s, s.West)
	s.Logical.Apply(manifests.DaemonSet("agent", ""))
	// Nothing is claimed to be done before every cluster has said what it wants.
	s.Logical.Kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
	ds, err := s.Logical.Kube.AppsV1().DaemonSets(s.Namespace).Get(t.Context(), "agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !onNodes(east + west)(ds) {
		t.Errorf("it reads as rolled out with status %+v, want %d and %d nodes", ds.Status, east, west)
	}
	if got := chosen(s, ds); !slices.Equal(got, []string{"east", "west"}) {
		t.Errorf("placed on %v, want both clusters", got)
	}
	breakdown, err := summary.ParseBreakdown(ds.Annotations[v1alpha1.AnnotationStatus])
	if err != nil || breakdown["east"].Ready != east || breakdown["west"].Ready != west {
		t.Errorf("the breakdown says %v, %v", breakdown, err)
	}
	pods := framework.AwaitList(s.Logical, "app=agent", "every node's pod is shown", expect.ReadyPods(int(east+west)))
	for _, pod := range pods {
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "DaemonSet" || owner.UID != ds.UID {
			t.Errorf("pod %s belongs to %+v, want the DaemonSet", pod.Name, owner)
		}
	}
	all := fmt.Sprint(east + west)
	want := []string{"agent", all, all, all, all, all, "<none>"}
	if got := strings.Fields(s.Logical.Kubectl("get", "daemonset", "agent", "--no-headers")); !slices.Equal(got[:7], want) {
		t.Errorf("kubectl get shows %v, want %v", got, want)
	}
	expect.Says(t, s.Logical.Kubectl("describe", "daemonset", "agent"), "Desired Number of Nodes Scheduled: "+all, "SuccessfulCreate")
	expect.Says(t, s.Logical.CLI("explain", "daemonset/agent"), "EachCluster", "placed on east and west")

	s.Logical.Kubectl("set", "image", "daemonset/agent", "agent=agent:2")
	s.Logical.Kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
	framework.AwaitList(s.Logical, "app=agent", "all pods are new", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(int(east+west))(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.Spec.Containers[0].Image != "agent:2"
		})
	})
	if history := s.Logical.Kubectl("rollout", "history", "daemonset/agent"); !strings.Contains(history, "1 ") || !strings.Contains(history, "2 ") {
		t.Errorf("the history is\n%s", history)
	}
	s.Logical.Kubectl("rollout", "undo", "daemonset/agent")
	s.Logical.Kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
	revisions, err := s.Logical.Kube.AppsV1().ControllerRevisions(s.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=agent"})
	if err != nil || len(revisions.Items) != 2 {
		t.Fatalf("%d revisions, %v; want those of two templates", len(revisions.Items), err)
	}
	newest := slices.MaxFunc(revisions.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	framework.AwaitList(s.Logical, "app=agent", "all pods are as at first, and name their revision", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(int(east+west))(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			const label = appsv1.ControllerRevisionHashLabelKey
			return p.Spec.Containers[0].Image != "agent:1" || p.Labels[label] != newest.Labels[label]
		})
	})

	// A pod that is deleted comes again, as it would below.
	s.Logical.Kubectl("delete", "pod", pods[0].Name, "--ignore-not-found")
	framework.AwaitList(s.Logical, "app=agent", "every node has its pod again", expect.ReadyPods(int(east+west)))

	s.Logical.Kubectl("delete", "daemonset", "agent", "--timeout=60s")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*appsv1.DaemonSet](side, "agent")
	}
	framework.AwaitList(s.Logical, "app=agent", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
}

func TestADaemonSetGoesWhereItsPinSays(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	east, west := nodesOf(s, s.East), nodesOf(s, s.West)
	s.Logical.Apply(manifests.DaemonSet("agent", "west"))
	framework.Await(s.Logical, "agent", "is on one cluster", onNodes(west))
	framework.AwaitGone[*appsv1.DaemonSet](s.East, "agent")

	s.Logical.Kubectl("annotate", "daemonset", "agent", v1alpha1.AnnotationClusters+"=*", "--overwrite")
	framework.Await(s.Logical, "agent", "is on both", onNodes(east+west))
	s.Logical.Kubectl("annotate", "daemonset", "agent", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.Await(s.Logical, "agent", "is on the other", onNodes(east))
	framework.AwaitGone[*appsv1.DaemonSet](s.West, "agent")
	framework.AwaitList(s.Logical, "app=agent", "the pods of the cluster that it left are gone", expect.ReadyPods(int(east)))
}

func TestADaemonSetFindsItsNodesBelow(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	east := nodesOf(s, s.East)
	onOne := func(host string) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) {
			ds.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: host}
		}
	}
	nodes, err := s.East.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host := nodes.Items[0].Labels[corev1.LabelHostname]
	s.Logical.Apply(manifests.DaemonSet("one", "", onOne(host)), manifests.DaemonSet("none", "", onOne("nowhere")))
	// What no node of any cluster wants is complete, as it is on a single cluster.
	s.Logical.Kubectl("rollout", "status", "daemonset/none", "--timeout=60s")
	framework.Await(s.Logical, "none", "wants no pods", onNodes(0))
	framework.Await(s.Logical, "one", "wants one pod", onNodes(1))
	if east > 1 {
		framework.Await(s.West, "one", "is there and wants none", onNodes(0))
	}
	s.Logical.Apply(manifests.DaemonSet("one", "", onOne("nowhere")))
	framework.Await(s.Logical, "one", "wants no pod any more", onNodes(0))
}

func TestAJoiningClusterGetsDaemonSetsAndACordonedOneKeepsThem(t *testing.T) {
	s := suite.Fragile(t)
	east, west, north := nodesOf(s, s.East), nodesOf(s, s.West), nodesOf(s, s.Side("north"))
	s.Logical.Apply(manifests.DaemonSet("agent", ""))
	framework.Await(s.Logical, "agent", "is on all clusters", onNodes(east+west))
	membership.Join(s, "north")
	framework.Await(s.Logical, "agent", "is on the new cluster too", onNodes(east+west+north))

	s.Logical.CLI("cluster", "cordon", "north")
	framework.Await(s.Logical, "north", "is cordoned", func(c *v1alpha1.Cluster) bool { return c.Spec.Unschedulable })
	s.Logical.Apply(manifests.DaemonSet("late", ""))
	framework.Await(s.Logical, "late", "is where it may go", onNodes(east+west))
	s.Logical.Kubectl("set", "image", "daemonset/agent", "agent=agent:2")
	s.Logical.Kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
	framework.Await(s.Side("north"), "agent", "is kept and kept current", func(ds *appsv1.DaemonSet) bool {
		return onNodes(north)(ds) && ds.Spec.Template.Spec.Containers[0].Image == "agent:2"
	})
	s.Logical.CLI("cluster", "remove", "north")
	framework.Await(s.Logical, "agent", "has left", onNodes(east+west))
	framework.AwaitGone[*appsv1.DaemonSet](s.Side("north"), "agent")
}
