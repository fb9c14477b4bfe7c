package clients

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// makingVerbs make objects out of arguments or of other objects.
var makingVerbs = []verb{
	{"create deployment", createDeployment},
	{"run and run --expose", runPod},
	{"run -i --rm", runAttached},
	{"expose", expose},
	{"expose of pods, ReplicaSets and Services", exposeOthers},
	{"debug --copy-to", debugCopy},
	{"debug of a node", debugNode},
	{"autoscale", autoscale},
}

func createDeployment(s *framework.Scenario) {
	s.Logical.Kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2", "--port=8080")
	expect.RolledOut(s, "web", 2)
	framework.AwaitList(s.Logical, "app=web", "its pods run", expect.ReadyPods(2))
}

func expose(s *framework.Scenario) {
	onBoth(s, 4)
	s.Logical.Kubectl("expose", "deployment", "web", "--name=front", "--port=80", "--target-port=8080")
	expect.Says(s.T, s.Logical.Kubectl("get", "service", "front", "-o", "wide"), "ClusterIP", "80/TCP", "app=web")
	s.Logical.Poll("the Service answers", func() error {
		return framework.Failure(s.Logical.Try("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/front/proxy/", s.Namespace)))
	})
	expect.Refused(s.T, s.Logical.Try("expose", "deployment", "web", "--name=front", "--port=80"), "AlreadyExists")
}

// The least number of replicas needs no metrics.
func autoscale(s *framework.Scenario) {
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east,west"))
	s.Logical.Kubectl("autoscale", "deployment", "web", "--min=3", "--max=5")
	framework.Await(s.Logical, "web", "has grown to the least that the autoscaler allows", expect.Available(3))
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "web", "has its share of them", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas > 0 })
	}
	s.Logical.Poll("its event says so", func() error {
		out := s.Logical.Kubectl("describe", "hpa", "web")
		return framework.Contains(out, "SuccessfulRescale", "New size: 3", "Deployment/web")
	})
	s.Logical.Kubectl("wait", "hpa/web", "--for=condition=AbleToScale", "--timeout=60s")
}

func runPod(s *framework.Scenario) {
	s.Logical.Kubectl("run", "once", "--image=web:1", "--port=8080", "--labels=app=once,tier=back", "--env=COLOR=blue", "--expose",
		"--annotations="+v1alpha1.AnnotationClusters+"=west")
	s.Logical.Kubectl("wait", "pod/once", "--for=condition=Ready", "--timeout=60s")
	framework.Await(s.West, "once", "runs where it is pinned", expect.Ready)
	if got := s.Logical.Kubectl("exec", "once", "--", "sh", "-c", "echo $COLOR in $CLUSTER"); got != "blue in west\n" {
		s.Errorf("it says %q", got)
	}
	expect.Says(s.T, s.Logical.Kubectl("get", "service", "once", "-o", "wide"), "8080/TCP", "app=once,tier=back")
	s.Logical.Poll("the Service answers", func() error {
		return framework.Failure(s.Logical.Try("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/once/proxy/", s.Namespace)))
	})
	expect.Says(s.T, s.Logical.Kubectl("run", "never", "--image=web:1", "--dry-run=server", "-o", "yaml"), "name: never", "manifold.dev/placement")
	expect.Refused(s.T, s.Logical.Try("run", "once", "--image=web:1"), "AlreadyExists")
	s.Logical.Kubectl("delete", "pod,service", "once", "--timeout=60s")
	framework.AwaitGone[*corev1.Pod](s.West, "once")
}

// runAttached types into a pod that goes when the command ends. Containers of the stock clusters print what they are given.
func runAttached(s *framework.Scenario) {
	result := s.Logical.TryInput("hello from outside\n", "run", "tmp", "-i", "--rm", "--image=tools:1", "--annotations="+v1alpha1.AnnotationClusters+"=east", "--", "cat")
	if result.Code != 0 {
		s.Errorf("it ended as %s", result)
	}
	expect.Says(s.T, result.Stdout+result.Stderr, "started image tools:1", "of cluster east", `pod "tmp" deleted`)
	for _, side := range []*framework.Side{s.Logical, s.East} {
		framework.AwaitGone[*corev1.Pod](side, "tmp")
	}
}

func exposeOthers(s *framework.Scenario) {
	pods := onBoth(s, 2)
	// By the labels of the pod, of which its ReplicaSet has given it one.
	s.Logical.Kubectl("expose", "pod", pods["west"].Name, "--name=one", "--port=80", "--target-port=8080")
	s.Logical.Kubectl("expose", "deployment", "web", "--name=first", "--port=80", "--target-port=8080")
	s.Logical.Kubectl("expose", "service", "first", "--name=second", "--port=8080", "--type=NodePort")
	s.Logical.Kubectl("expose", "replicaset", pods["west"].OwnerReferences[0].Name, "--name=third", "--port=8080", "--cluster-ip=None")
	for _, name := range []string{"one", "first", "second", "third"} {
		for _, side := range []*framework.Side{s.East, s.West} {
			framework.Await(side, name, "is there", framework.Exists[*corev1.Service])
		}
	}
	s.Logical.Poll("the Service of one pod answers", func() error {
		return framework.Failure(s.Logical.Try("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/one/proxy/", s.Namespace)))
	})
	s.Logical.Apply(manifests.Database("db", 2, manifests.SetOn("west")))
	s.Logical.Kubectl("create", "service", "clusterip", "db-1", "--tcp=5432")
	s.Logical.Kubectl("set", "selector", "service", "db-1", "statefulset.kubernetes.io/pod-name=db-1")
	framework.Await(s.West, "db-1", "the Service of one replica is there", framework.Exists[*corev1.Service])
	expect.Says(s.T, s.Logical.Kubectl("describe", "service", "second"), "NodePort", "app=web", "Endpoints:")
}

// debugCopy runs a copy of a mirrored pod that is its user's.
func debugCopy(s *framework.Scenario) {
	pods := onBoth(s, 2)
	pod := pods["west"]
	s.Logical.Kubectl("debug", pod.Name, "--copy-to=copy", "--same-node", "--image=tools:1", "-c", "tools", "--share-processes", "--set-image=web=web:debug")
	s.Logical.Kubectl("wait", "pod/copy", "--for=condition=Ready", "--timeout=60s")
	above := framework.Await(s.Logical, "copy", "runs", expect.Ready)
	below := framework.Await(s.West, "copy", "runs beside the original", expect.Ready)
	if len(below.Spec.Containers) != 2 || below.Spec.Containers[0].Image != "web:debug" || above.Spec.NodeName != "west" || len(above.OwnerReferences) > 0 {
		s.Errorf("the copy is %+v on %q, owned by %v", below.Spec.Containers, above.Spec.NodeName, above.OwnerReferences)
	}
	expect.Says(s.T, s.Logical.Kubectl("logs", "copy", "-c", "tools"), "started image tools:1")
	s.Logical.Kubectl("delete", "pod", "copy", "--timeout=60s")
	framework.AwaitGone[*corev1.Pod](s.West, "copy")
	framework.Await(s.West, pod.Name, "is still there", expect.Ready)
}

// A Node is a cluster, so what is to debug one runs on some node of that cluster.
func debugNode(s *framework.Scenario) {
	out := s.Logical.Kubectl("debug", "node/east", "--image=tools:1", "--profile=general")
	_, rest, _ := strings.Cut(out, "Creating debugging pod ")
	name, _, _ := strings.Cut(rest, " ")
	s.Logical.Kubectl("wait", "pod/"+name, "--for=condition=Ready", "--timeout=60s")
	framework.Await(s.East, name, "runs there", expect.Ready)
	if got := s.Logical.Kubectl("exec", name, "--", "sh", "-c", "echo $CLUSTER"); got != "east\n" {
		s.Errorf("it is in %q", got)
	}
	s.Logical.Kubectl("delete", "pod", name, "--timeout=60s")
	framework.AwaitGone[*corev1.Pod](s.East, name)
}
