package clients

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// podVerbs work with the containers of mirrored pods.
var podVerbs = []verb{
	{"logs --all-containers -l -f", logsOfAll},
	{"logs --previous", logsPrevious},
	{"exec -it while the terminal changes its size", execResize},
	{"debug", debug},
	{"debug -it", debugAttached},
	{"patch --subresource=resize", resizePod},
	{"patch --subresource=status for a readiness gate", passGate},
}

func logsOfAll(s *framework.Scenario) {
	s.Logical.Apply(manifests.Edited(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.Containers = append(spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
		spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "prepare:1"}}
	}))
	expect.RolledOut(s, "web", 2)
	pods := oneEach(framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(2)))
	all := s.Logical.Kubectl("logs", "-l", "app=web", "--all-containers", "--prefix")
	all += s.Logical.Kubectl("logs", "deployment/web", "--all-pods", "--all-containers", "--prefix")
	for _, pod := range pods {
		for _, container := range []string{"web", "proxy", "prepare"} {
			expect.Says(s.T, all, fmt.Sprintf("[pod/%s/%s]", pod.Name, container))
		}
		expect.Refused(s.T, s.Logical.Try("logs", pod.Name, "-c", "nobody"), "nobody")
	}
	follow := s.Logical.Start("logs", "-f", "-l", "app=web", "--all-containers", "--prefix", "--max-log-requests=6")
	for cluster, pod := range pods {
		// A line is followed whether it comes before kubectl has connected or after.
		line := "something happens in " + cluster
		if err := s.Environment.Clusters[cluster].Log(s.Context(), s.Namespace, pod.Name, "proxy", line); err != nil {
			s.Fatal(err)
		}
		follow.AwaitOutput(fmt.Sprintf("[pod/%s/proxy] %s", pod.Name, line))
	}
}

// logsPrevious has containers restart as a kubelet would tell it.
func logsPrevious(s *framework.Scenario) {
	for cluster, pod := range onBoth(s, 2) {
		if err := s.Environment.Clusters[cluster].Log(s.Context(), s.Namespace, pod.Name, "web", "about to crash"); err != nil {
			s.Fatal(err)
		}
		sideOf(s, pod).Kubectl("patch", "pod", pod.Name, "--subresource=status", "-p", `{"status":{"containerStatuses":[{"name":"web","restartCount":1,`+
			`"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}}`)
		framework.Await(s.Logical, pod.Name, "has restarted", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 })
		expect.Says(s.T, s.Logical.Kubectl("logs", "--previous", pod.Name), "about to crash")
		if got := s.Logical.Kubectl("logs", pod.Name); strings.Contains(got, "about to crash") {
			s.Errorf("the log is not that of the container after its restart:\n%s", got)
		}
		expect.Says(s.T, s.Logical.Kubectl("describe", "pod", pod.Name), "Restart Count:  1", "OOMKilled")
	}
}

func execResize(s *framework.Scenario) {
	for _, pod := range onBoth(s, 2) {
		shell := s.Logical.StartOnTerminal("exec", "-it", pod.Name, "--", "sh")
		shell.Type("until stty size | grep -q '33 111'; do :; done; echo it \"fits\"\n")
		shell.AwaitOutput("it fits")
		shell.Resize(44, 122)
		shell.Type("until stty size | grep -q '44 122'; do :; done; echo it fits \"again\"\n")
		shell.AwaitOutput("it fits again")
		shell.Type("exit\n")
		if result := shell.AwaitEnd(); result.Code != 0 {
			s.Errorf("the shell ended with code %d:\n%s", result.Code, result.Stdout)
		}
	}
}

func debug(s *framework.Scenario) {
	for cluster, pod := range onBoth(s, 2) {
		s.Logical.Kubectl("debug", pod.Name, "--image=tools:1", "-c", "first", "--target=web", "--env=COLOR=blue", "--", "sh")
		// The next is based on what the first has left.
		s.Logical.Kubectl("debug", pod.Name, "--image=tools:2", "-c", "second", "--profile=restricted")
		framework.Await(s.Logical, pod.Name, "shows that both run", func(p *corev1.Pod) bool {
			return len(p.Spec.EphemeralContainers) == 2 && running(p.Status.EphemeralContainerStatuses) == 2
		})
		below := framework.Await(sideOf(s, pod), pod.Name, "has both", func(p *corev1.Pod) bool { return len(p.Spec.EphemeralContainers) == 2 })
		if got := below.Spec.EphemeralContainers[0]; got.TargetContainerName != "web" || got.Image != "tools:1" {
			s.Errorf("the first arrived as %+v", got)
		}
		expect.Says(s.T, s.Logical.Kubectl("describe", "pod", pod.Name), "Ephemeral Containers:", "tools:2")
		expect.Says(s.T, s.Logical.Kubectl("logs", pod.Name, "-c", "first"), "started image tools:1 on node "+cluster)
		if got := s.Logical.Kubectl("exec", pod.Name, "-c", "first", "--", "sh", "-c", "echo $COLOR in $CLUSTER"); got != "blue in "+cluster+"\n" {
			s.Errorf("it ran in %q", got)
		}
		expect.Refused(s.T, s.Logical.Try("debug", pod.Name, "--image=tools:1", "-c", "web"), `Duplicate value: "web"`)
		expect.Refused(s.T, s.Logical.Try("patch", "pod", pod.Name, "--subresource=ephemeralcontainers", "--type=json",
			"-p", `[{"op":"remove","path":"/spec/ephemeralContainers/0"}]`), "ephemeralContainers", "Forbidden")
	}
}

func running(statuses []corev1.ContainerStatus) int {
	count := 0
	for _, status := range statuses {
		if status.State.Running != nil {
			count++
		}
	}
	return count
}

func debugAttached(s *framework.Scenario) {
	for _, pod := range onBoth(s, 2) {
		session := s.Logical.StartOnTerminal("debug", "-it", pod.Name, "--image=tools:1", "-c", "tools")
		session.AwaitOutput("If you don't see a command prompt")
		session.Type("hello from outside\n")
		s.Logical.Poll("what was typed arrives", func() error {
			return framework.Contains(s.Logical.Kubectl("logs", pod.Name, "-c", "tools"), "hello from outside")
		})
		session.Stop()
	}
}

// resizePod first reports resources as a kubelet does that can resize.
func resizePod(s *framework.Scenario) {
	const change = `{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"20m"}}}]}}`
	for _, pod := range onBoth(s, 2) {
		expect.Refused(s.T, s.Logical.Try("patch", "pod", pod.Name, "--subresource=resize", "-p", change), "without support for resize")
		sideOf(s, pod).Kubectl("patch", "pod", pod.Name, "--subresource=status",
			"-p", `{"status":{"containerStatuses":[{"name":"web","resources":{"requests":{"cpu":"10m","memory":"16Mi"}}}]}}`)
		framework.Await(s.Logical, pod.Name, "shows what it has", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].Resources != nil })

		s.Logical.Kubectl("patch", "pod", pod.Name, "--subresource=resize", "-p", change, "--dry-run=server")
		s.Logical.Kubectl("patch", "pod", pod.Name, "--subresource=resize", "-p", change)
		for _, side := range []*framework.Side{s.Logical, sideOf(s, pod)} {
			got, err := side.Kube.CoreV1().Pods(s.Namespace).Get(s.Context(), pod.Name, getOptions)
			if err != nil {
				s.Fatal(err)
			}
			if requests := got.Spec.Containers[0].Resources.Requests; requests.Cpu().String() != "20m" || requests.Memory().String() != "16Mi" {
				s.Errorf("%s: it requests %v", side.Name, requests)
			}
		}
		expect.Refused(s.T, s.Logical.Try("patch", "pod", pod.Name, "-p", strings.ReplaceAll(change, "20m", "30m")), "change the workload that it belongs to")
	}
}

// passGate does what a load balancer's controller does above, which knows nothing of clusters.
func passGate(s *framework.Scenario) {
	const gate = "example.com/registered"
	s.Logical.Apply(manifests.Edited(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	}))
	expect.RolledOut(s, "web", 2)
	for _, pod := range oneEach(framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(2))) {
		s.Logical.Kubectl("patch", "pod", pod.Name, "--subresource=status",
			"-p", fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"False","reason":"Draining"}]}}`, gate))
		says := func(p *corev1.Pod) bool {
			return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate && c.Reason == "Draining" })
		}
		framework.Await(sideOf(s, pod), pod.Name, "is told", says)
		// The next report of the cluster does not take it back.
		sideOf(s, pod).Kubectl("annotate", "pod", pod.Name, "note=later")
		framework.Await(s.Logical, pod.Name, "has been reported again", func(p *corev1.Pod) bool { return p.Annotations["note"] == "later" && says(p) })
		expect.Says(s.T, s.Logical.Kubectl("get", "pod", pod.Name, "-o", "wide"), "0/1")
	}
}
