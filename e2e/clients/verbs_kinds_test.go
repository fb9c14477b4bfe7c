package clients

import (
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// kindVerbs name a workload and mean its pods, for the kinds other than Deployments. Their rollouts are tested with the kinds.
var kindVerbs = []verb{
	{"logs, exec, port-forward and set by statefulset/NAME", statefulSetByName},
	{"eviction of a StatefulSet's pods within a budget", evictStatefulSet},
}

// byName logs, executes and forwards by TYPE/NAME, which kubectl resolves to a pod by the workload's selector.
func byName(s *framework.Scenario, workload, image, cluster string) {
	s.Helper()
	_, name, _ := strings.Cut(workload, "/")
	expect.Says(s.T, s.Logical.Kubectl("logs", workload), "started image "+image, "of cluster "+cluster)
	if got := s.Logical.Kubectl("exec", workload, "--", "sh", "-c", "echo $HOSTNAME in $CLUSTER"); !strings.HasPrefix(got, name+"-") ||
		!strings.HasSuffix(got, " in "+cluster+"\n") {
		s.Errorf("exec %s ran in %q", workload, got)
	}
	forward := s.Logical.Start("port-forward", workload, ":8080")
	expect.Says(s.T, fetch(s, forwarded(forward)), "pod: "+s.Namespace+"/"+name+"-", "node: "+cluster)
	s.Logical.Poll("its events are listed", func() error {
		return framework.Contains(s.Logical.Kubectl("events", "--for="+workload), "SuccessfulCreate")
	})
}

func statefulSetByName(s *framework.Scenario) {
	s.Logical.Apply(manifests.Database("db", 2, manifests.SetOn("west")))
	expect.SetRolledOut(s, "db", 2)
	byName(s, "statefulset/db", "db:1", "west")
	s.Logical.Kubectl("set", "env", "statefulset/db", "SHAPE=round")
	s.Logical.Kubectl("set", "resources", "statefulset/db", "--requests=cpu=20m")
	s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	framework.Await(s.West, "db", "has both", func(set *appsv1.StatefulSet) bool {
		c := set.Spec.Template.Spec.Containers[0]
		return framework.EnvOf(c, "SHAPE") == "round" && c.Resources.Requests.Cpu().String() == "20m"
	})
	for _, name := range manifests.Ordinals("db", 0, 2) {
		framework.Await(s.Logical, name, "is a new one", func(p *corev1.Pod) bool {
			return framework.EnvOf(p.Spec.Containers[0], "SHAPE") == "round" && expect.Ready(p)
		})
	}
	if got := s.Logical.Kubectl("exec", "db-0", "--", "sh", "-c", "echo $SHAPE"); got != "round\n" {
		s.Errorf("the environment is %q, want the one that was set", got)
	}
	s.Logical.Kubectl("debug", "db-1", "--image=tools:1", "-c", "debugger")
	framework.Await(s.Logical, "db-1", "runs the debugger", func(p *corev1.Pod) bool { return running(p.Status.EphemeralContainerStatuses) == 1 })
}

func evictStatefulSet(s *framework.Scenario) {
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("east")))
	expect.SetRolledOut(s, "db", 3)
	s.Logical.Kubectl("create", "poddisruptionbudget", "web", "--selector=app=db", "--max-unavailable=1")
	awaitBudget(s, 1)
	// What goes is not replaced, so the budget stays spent.
	s.East.Kubectl("create", "quota", "full", "--hard=pods=0")
	s.East.Kubectl("wait", "quota/full", "--for=jsonpath={.status.hard.pods}=0", "--timeout=60s")
	pods := expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 3))
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() { errs[i] = framework.Evict(s, pod, nil) })
	}
	group.Wait()
	evicted := 0
	for i, err := range errs {
		if err == nil {
			evicted++
		} else if !refusedByBudget(err) {
			s.Errorf("evict %s: %v, want that the budget does not allow it", pods[i].Name, err)
		}
	}
	if evicted != 1 {
		s.Errorf("%d pods were evicted at once, want 1", evicted)
	}
	framework.AwaitList(s.Logical, "app=db", "two are left", expect.ReadyPods(2))
	s.East.Kubectl("delete", "quota", "full")
	expect.SetRolledOut(s, "db", 3)
	awaitBudget(s, 1)
}
