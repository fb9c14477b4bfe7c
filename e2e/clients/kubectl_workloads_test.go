package clients

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// crew is a Deployment that runs in both clusters, for tests of what kubectl does with it.
type crew struct {
	*framework.Scenario
	// pods holds one pod of each cluster, by the cluster's name.
	pods map[string]*corev1.Pod
}

func newCrew(t *testing.T) crew {
	t.Helper()
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"), `
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector:
    app: web
  ports:
  - port: 80
    targetPort: 8080
`)
	expect.RolledOut(s, "web", 4)
	c := crew{Scenario: s, pods: map[string]*corev1.Pod{}}
	for _, pod := range framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(4)) {
		c.pods[pod.Spec.NodeName] = pod
	}
	return c
}

// eachCluster runs a test for one pod in each cluster.
func (c crew) eachCluster(t *testing.T, test func(s *framework.Scenario, cluster string, pod *corev1.Pod)) {
	t.Helper()
	for cluster, pod := range c.pods {
		t.Run(cluster, func(t *testing.T) { test(c.Subtest(t), cluster, pod) })
	}
}

func TestEveryVerbOfKubectlWorksAboveBothClusters(t *testing.T) {
	c := newCrew(t)
	for _, verb := range []struct {
		name string
		test func(c crew, t *testing.T)
	}{
		{"get -o wide", testGet},
		{"describe", testDescribe},
		{"logs", testLogs},
		{"logs -f", testLogsFollow},
		{"exec", testExec},
		{"exec -it", testExecOnTerminal},
		{"attach", testAttach},
		{"cp", testCopy},
		{"port-forward", testPortForward},
		{"scale", testScale},
		{"wait", testWait},
		{"rollout status, history and undo", testRollout},
		{"rollout restart", testRestart},
		{"rollout pause and resume", testPause},
		{"delete pod", testDeletePod},
	} {
		t.Run(verb.name, func(t *testing.T) {
			in := c
			in.Scenario = c.Subtest(t)
			verb.test(in, t)
		})
	}
}

func testGet(c crew, t *testing.T) {
	wide := c.Logical.Kubectl("get", "deployments,replicasets,pods,services,events", "-o", "wide")
	for cluster, pod := range c.pods {
		expect.Says(t, wide, cluster, pod.Name, pod.Status.PodIP)
	}
	expect.Says(t, c.Logical.Kubectl("get", "deployment", "web"), "4/4     4            4 ")
	expect.Says(t, c.Logical.Kubectl("get", "replicaset"), "4         4         4")
	pods := strings.Join(strings.Fields(c.Logical.Kubectl("get", "pods")), " ")
	if got := strings.Count(pods, " 1/1 Running 0 "); got != 4 {
		t.Errorf("%d pods are said to run, want 4", got)
	}
	for cluster := range c.pods {
		list := c.Logical.Kubectl("get", "pods", "-o", "name", "--field-selector=spec.nodeName="+cluster)
		if got, want := strings.Count(list, "pod/"), framework.DecisionOf(c.Scenario, framework.ReadDeployment(c.Scenario, "web"))[cluster].Replicas; got != int(want) {
			t.Errorf("%d pods are said to be on %s, want %d", got, cluster, want)
		}
	}
}

func testDescribe(c crew, t *testing.T) {
	expect.Says(t, c.Logical.Kubectl("describe", "deployment", "web"),
		"4 desired | 4 updated | 4 total | 4 available | 0 unavailable", "NewReplicaSet:   web-", "ScalingReplicaSet")
	expect.Says(t, c.Logical.Kubectl("describe", "replicaset"), "4 current / 4 desired", "4 Running / 0 Waiting", "SuccessfulCreate")
	expect.Says(t, c.Logical.Kubectl("describe", "service", "web"), "Selector:", "app=web")
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		expect.Says(s.T, s.Logical.Kubectl("describe", "pod", pod.Name), "Node:             "+cluster, "Status:           Running", "Scheduled")
		expect.Says(s.T, s.Logical.Kubectl("describe", "node", cluster), pod.Name, "Allocatable:")
	})
}

// greeting is the first line that the containers of the stock clusters print.
func greeting(pod *corev1.Pod, cluster string) string {
	return fmt.Sprintf("%s/web: started image %s on node ", pod.Name, pod.Spec.Containers[0].Image) + cluster
}

func testLogs(c crew, t *testing.T) {
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		expect.Says(s.T, s.Logical.Kubectl("logs", pod.Name), greeting(pod, cluster), "of cluster "+cluster)
		for _, line := range []string{"one", "two", "three"} {
			if err := s.Environment.Clusters[cluster].Log(s.Context(), s.Namespace, pod.Name, "web", line); err != nil {
				s.Fatal(err)
			}
		}
		if got := s.Logical.Kubectl("logs", pod.Name, "-c", "web", "--tail=2"); got != "two\nthree\n" {
			s.Errorf("the last two lines are %q", got)
		}
		if got := s.Logical.Kubectl("logs", pod.Name, "--tail=1", "--timestamps"); !strings.HasSuffix(got, "Z three\n") {
			s.Errorf("the last line with its time is %q", got)
		}
		expect.Refused(s.T, s.Logical.Try("logs", pod.Name, "-c", "nobody"), "nobody")
		expect.Refused(s.T, s.Logical.Try("logs", pod.Name, "--previous"), "previous terminated container")
	})
	all := c.Logical.Kubectl("logs", "-l", "app=web", "--prefix")
	for _, pod := range c.pods {
		expect.Says(t, all, "[pod/"+pod.Name+"/web]")
	}
	expect.Says(t, c.Logical.Kubectl("logs", "deployment/web"), "started image web:1")
}

func testLogsFollow(c crew, t *testing.T) {
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		follow := s.Logical.Start("logs", "-f", pod.Name)
		follow.AwaitOutput(greeting(pod, cluster))
		for _, line := range []string{"something happens", "something else happens"} {
			if err := s.Environment.Clusters[cluster].Log(s.Context(), s.Namespace, pod.Name, "web", line); err != nil {
				s.Fatal(err)
			}
			follow.AwaitOutput(line)
		}
	})
}

func testExec(c crew, t *testing.T) {
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		if got := s.Logical.Kubectl("exec", pod.Name, "--", "sh", "-c", "echo $HOSTNAME in $CLUSTER"); got != pod.Name+" in "+cluster+"\n" {
			s.Errorf("it ran in %q", got)
		}
		result := s.Logical.Try("exec", pod.Name, "-c", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
		if result.Code != 7 || result.Stdout != "out\n" || !strings.HasPrefix(result.Stderr, "err\n") {
			s.Errorf("outputs and exit code do not pass through: %s", result)
		}
		if got := s.Logical.KubectlInput("one\ntwo\n", "exec", "-i", pod.Name, "--", "wc", "-l"); strings.TrimSpace(got) != "2" {
			s.Errorf("of two lines of input it got %q", got)
		}
		expect.Refused(s.T, s.Logical.Try("exec", pod.Name, "-c", "nobody", "--", "true"), "nobody")
		event := framework.AwaitAudited(s, func(e framework.AuditEvent) bool {
			return e.ObjectRef.Subresource == "exec" && e.ObjectRef.Name == pod.Name
		})
		if event.User.Username == "" {
			s.Errorf("the audit log does not say who: %+v", event)
		}
	})
	expect.Says(t, c.Logical.Kubectl("exec", "deployment/web", "--", "sh", "-c", "echo in $CLUSTER"), "in ")
}

func testExecOnTerminal(c crew, t *testing.T) {
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		shell := s.Logical.StartOnTerminal("exec", "-it", pod.Name, "--", "sh")
		// The size comes after the shell has started, as it does from any terminal.
		shell.Type("until stty size | grep -q '33 111'; do :; done; echo \"it fits in $CLUSTER\"\n")
		shell.AwaitOutput("it fits in " + cluster)
		shell.Type("exit 3\n")
		if result := shell.AwaitEnd(); result.Code != 3 {
			s.Errorf("the shell ended with code %d, want 3:\n%s", result.Code, result.Stdout)
		}
	})
}

func testAttach(c crew, t *testing.T) {
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		attach := s.Logical.Start("attach", "-i", pod.Name)
		attach.Type("hello from outside\n")
		attach.AwaitOutput("hello from outside")
		expect.Says(s.T, s.Logical.Kubectl("logs", pod.Name), "hello from outside")
	})
}

func testCopy(c crew, t *testing.T) {
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		there, back := filepath.Join(s.TempDir(), "there"), filepath.Join(s.TempDir(), "back")
		content := strings.Repeat("copied to "+cluster+"\n", 10_000)
		if err := os.WriteFile(there, []byte(content), 0o600); err != nil {
			s.Fatal(err)
		}
		s.Logical.Kubectl("cp", there, pod.Name+":file")
		if got := s.Logical.Kubectl("exec", pod.Name, "--", "cat", "file"); got != content {
			s.Errorf("%d bytes arrived, want %d", len(got), len(content))
		}
		s.Logical.Kubectl("cp", pod.Name+":file", back)
		if got, err := os.ReadFile(back); err != nil || string(got) != content {
			s.Errorf("%d bytes came back, want %d: %v", len(got), len(content), err)
		}
	})
}

func testPortForward(c crew, t *testing.T) {
	c.eachCluster(t, func(s *framework.Scenario, cluster string, pod *corev1.Pod) {
		forward := s.Logical.Start("port-forward", "pod/"+pod.Name, ":8080")
		address := forwarded(forward)
		// Several connections at a time, as a browser makes them.
		for range 3 {
			expect.Says(s.T, fetch(s, address), pod.Name, cluster)
		}
	})
	forward := c.Logical.Start("port-forward", "service/web", ":80")
	expect.Says(t, fetch(c.Scenario, forwarded(forward)), "web-")
}

// forwarded returns the local address that kubectl forwards.
func forwarded(forward *framework.Running) string {
	forward.AwaitOutput(" -> ")
	_, rest, _ := strings.Cut(forward.Output(), "Forwarding from ")
	address, _, _ := strings.Cut(rest, " -> ")
	return address
}

func fetch(s *framework.Scenario, address string) string {
	s.Helper()
	response, err := http.Get("http://" + address)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(body)
}

func testScale(c crew, t *testing.T) {
	c.Logical.Kubectl("scale", "deployment/web", "--replicas=6", "--current-replicas=4")
	expect.RolledOut(c.Scenario, "web", 6)
	expect.Refused(t, c.Logical.Try("scale", "deployment/web", "--replicas=4", "--current-replicas=5"), "Expected replicas to be 5")
	c.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	expect.RolledOut(c.Scenario, "web", 4)
	framework.AwaitList(c.Logical, "app=web", "four pods are left", expect.ReadyPods(4))
}

func testWait(c crew, t *testing.T) {
	waiting := c.Logical.Start("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=5", "--timeout=60s")
	c.Logical.Kubectl("scale", "deployment/web", "--replicas=5")
	if result := waiting.AwaitEnd(); result.Code != 0 {
		t.Errorf("waiting for five ready replicas: %s", result)
	}
	c.Logical.Kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=60s")
	c.Logical.Kubectl("wait", "deployment/web", "--for=condition=Progressing", "--timeout=60s")
	c.Logical.Kubectl("wait", "pods", "-l", "app=web", "--for=condition=Ready", "--timeout=60s")
	expect.Refused(t, c.Logical.Try("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=9", "--timeout=1s"), "timed out")
	c.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	expect.RolledOut(c.Scenario, "web", 4)
}

func testRollout(c crew, t *testing.T) {
	c.Logical.Kubectl("set", "image", "deployment/web", "web=web:2")
	expect.Says(t, c.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s"), "successfully rolled out")
	expect.Says(t, c.Logical.Kubectl("rollout", "history", "deployment/web"), "REVISION", "1", "2")
	expect.Says(t, c.Logical.Kubectl("rollout", "history", "deployment/web", "--revision=2"), "web:2")
	c.Logical.Kubectl("rollout", "undo", "deployment/web")
	expect.Says(t, c.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s"), "successfully rolled out")
	for _, side := range []*framework.Side{c.East, c.West} {
		framework.Await(side, "web", "runs the old image again", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "web:1" })
	}
	framework.AwaitList(c.Logical, "app=web", "only pods of the old image are left", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(4)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image != "web:1" })
	})
	if got := framework.ReadDeployment(c.Scenario, "web").Annotations["deployment.kubernetes.io/revision"]; got != "3" {
		t.Errorf("revision %q after undoing the second, want 3", got)
	}
}

func testRestart(c crew, t *testing.T) {
	before := framework.AwaitList(c.Logical, "app=web", "there are four pods", expect.ReadyPods(4))
	c.Logical.Kubectl("rollout", "restart", "deployment/web")
	c.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	framework.AwaitList(c.Logical, "app=web", "every pod is a new one", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(4)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return slices.ContainsFunc(before, func(old *corev1.Pod) bool { return old.UID == p.UID })
		})
	})
}

func testPause(c crew, t *testing.T) {
	c.Logical.Kubectl("rollout", "pause", "deployment/web")
	c.Logical.Kubectl("set", "image", "deployment/web", "web=web:5")
	d := framework.Await(c.Logical, "web", "says that it is paused", func(d *appsv1.Deployment) bool {
		return framework.ConditionOf(d, appsv1.DeploymentProgressing).Reason == "DeploymentPaused" && d.Status.ObservedGeneration == d.Generation
	})
	if d.Status.UpdatedReplicas != 0 || d.Status.AvailableReplicas != 4 {
		t.Errorf("status %+v, want four old replicas available and none updated", d.Status)
	}
	for _, pod := range framework.AwaitList(c.Logical, "app=web", "there are four pods", expect.ReadyPods(4)) {
		if pod.Spec.Containers[0].Image != "web:1" {
			t.Errorf("pod %s runs %s although the rollout is paused", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
	expect.Refused(t, c.Logical.Try("rollout", "restart", "deployment/web"), "paused")
	c.Logical.Kubectl("rollout", "resume", "deployment/web")
	c.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	framework.AwaitList(c.Logical, "app=web", "all pods run the new image", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(4)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image != "web:5" })
	})
}

func testDeletePod(c crew, t *testing.T) {
	for _, side := range []*framework.Side{c.East, c.West} {
		pods := framework.AwaitList(c.Logical, "app=web", "there are four pods", expect.ReadyPods(4))
		pod := pods[slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == side.Name })]
		c.Logical.Kubectl("delete", "pod", pod.Name, "--wait=false")
		now, err := c.Logical.Kube.CoreV1().Pods(c.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("pod %s is deleted and yet told without that (error: %v)", pod.Name, err)
		}
		framework.AwaitGone[*corev1.Pod](side, pod.Name)
		framework.AwaitList(c.Logical, "app=web", "another pod has taken its place in the same cluster", func(now []*corev1.Pod) bool {
			here := 0
			for _, p := range now {
				if p.Spec.NodeName == side.Name {
					here++
				}
			}
			return expect.ReadyPods(4)(now) && here == int(framework.DecisionOf(c.Scenario, framework.ReadDeployment(c.Scenario, "web"))[side.Name].Replicas) &&
				!slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.UID == pod.UID })
		})
	}
	c.Logical.Kubectl("delete", "pods", "-l", "app=web", "--timeout=60s")
	framework.AwaitList(c.Logical, "app=web", "four others have taken their places", expect.ReadyPods(4))
	expect.Refused(t, c.Logical.Try("delete", "pod", "nobody"), "NotFound")
	expect.RolledOut(c.Scenario, "web", 4)
}
