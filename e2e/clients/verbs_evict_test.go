package clients

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// evictionVerbs remove pods politely, or are refused.
var evictionVerbs = []verb{
	{"eviction of many pods at once within a budget", evictAtOnce},
	{"eviction that a budget in the cluster refuses", evictAgainstBudgetBelow},
	{"eviction without a budget", evictFreely},
	{"drain, cordon and uncordon of a node are refused", drainNode},
}

var getOptions = metav1.GetOptions{}

// refusedByBudget reports whether an error is the one by which clients know a budget.
func refusedByBudget(err error) bool {
	return apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
}

func awaitBudget(s *framework.Scenario, allowed int) {
	s.Helper()
	s.Logical.Kubectl("wait", "pdb/web", "--timeout=60s", fmt.Sprintf("--for=jsonpath={.status.disruptionsAllowed}=%d", allowed))
}

func evictAtOnce(s *framework.Scenario) {
	onBoth(s, 6)
	pods := framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(6))
	s.Logical.Kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--max-unavailable=2")
	awaitBudget(s, 2)
	// What goes is not replaced, so the budget stays spent.
	for _, side := range []*framework.Side{s.East, s.West} {
		side.Kubectl("create", "quota", "full", "--hard=pods=0")
		side.Kubectl("wait", "quota/full", "--for=jsonpath={.status.hard.pods}=0", "--timeout=60s")
	}
	if err := framework.Evict(s, pods[0], &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		s.Errorf("a dry run of what the budget allows: %v", err)
	}

	var mu sync.Mutex
	evicted := map[string]bool{}
	var group sync.WaitGroup
	for _, pod := range pods {
		group.Go(func() {
			err := framework.Evict(s, pod, nil)
			mu.Lock()
			defer mu.Unlock()
			evicted[pod.Name] = err == nil
			if err != nil && !refusedByBudget(err) {
				s.Errorf("evict %s: %v, want that the budget does not allow it", pod.Name, err)
			}
		})
	}
	group.Wait()
	maps.DeleteFunc(evicted, func(_ string, yes bool) bool { return !yes })
	if len(evicted) != 2 {
		s.Errorf("%d pods were evicted at once, want 2: %v", len(evicted), evicted)
	}
	left := framework.AwaitList(s.Logical, "app=web", "four are left", expect.ReadyPods(4))
	if slices.ContainsFunc(left, func(p *corev1.Pod) bool { return evicted[p.Name] }) {
		s.Errorf("of %v some are left", evicted)
	}
	if err := framework.Evict(s, left[0], &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); !refusedByBudget(err) {
		s.Errorf("a dry run of what the budget does not allow: %v", err)
	}
	expect.Says(s.T, s.Logical.Kubectl("describe", "pdb", "web"), "Allowed disruptions:  0", "Current:              4", "Desired:              4")
	for _, side := range []*framework.Side{s.East, s.West} {
		side.Kubectl("delete", "quota", "full")
	}
	expect.RolledOut(s, "web", 6)
	awaitBudget(s, 2)
}

// A refusal below costs the budget above nothing.
func evictAgainstBudgetBelow(s *framework.Scenario) {
	pods := onBoth(s, 2)
	s.Logical.Kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--max-unavailable=1")
	awaitBudget(s, 1)
	s.East.Kubectl("create", "poddisruptionbudget", "own", "--selector=app=web", "--min-available=100%")
	s.East.Kubectl("wait", "pdb/own", "--for=jsonpath={.status.observedGeneration}=1", "--timeout=60s")
	if err := framework.Evict(s, pods["east"], nil); !refusedByBudget(err) {
		s.Errorf("evict the pod in east: %v, want that the budget there does not allow it", err)
	}
	awaitBudget(s, 1)
	if err := framework.Evict(s, pods["west"], nil); err != nil {
		s.Errorf("evict the pod in west: %v", err)
	}
	framework.AwaitGone[*corev1.Pod](s.West, pods["west"].Name)
	if _, err := s.East.Kube.CoreV1().Pods(s.Namespace).Get(s.Context(), pods["east"].Name, getOptions); err != nil {
		s.Errorf("the pod in east is gone: %v", err)
	}
}

func evictFreely(s *framework.Scenario) {
	pods := onBoth(s, 2)
	for _, pod := range pods {
		other := metav1.NewUIDPreconditions("another")
		if err := framework.Evict(s, pod, &metav1.DeleteOptions{Preconditions: other}); !apierrors.IsConflict(err) {
			s.Errorf("evict a pod of another UID: %v, want a conflict", err)
		}
		if err := framework.Evict(s, pod, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			s.Errorf("evict: %v", err)
		}
		framework.AwaitGone[*corev1.Pod](s.Logical, pod.Name)
		if err := framework.Evict(s, pod, nil); !apierrors.IsNotFound(err) {
			s.Errorf("evict a pod that is gone: %v", err)
		}
	}
	framework.AwaitList(s.Logical, "app=web", "others have taken their places", expect.ReadyPods(2))
}

func drainNode(s *framework.Scenario) {
	onBoth(s, 4)
	var mu sync.Mutex
	gone := map[string]bool{}
	before := framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(4))
	stop := framework.Watch([]*framework.Side{s.Logical, s.East, s.West}, func(now map[string][]*corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		for _, pods := range now {
			for _, pod := range pods {
				gone[pod.Name] = gone[pod.Name] || pod.DeletionTimestamp != nil
			}
		}
	})
	for _, flags := range [][]string{{}, {"--disable-eviction", "--force"}, {"--ignore-daemonsets", "--delete-emptydir-data", "--grace-period=0"}, {"--dry-run=client"}} {
		expect.Refused(s.T, s.Logical.Try(append([]string{"drain", "east"}, flags...)...), "Forbidden", "nothing was evicted", "manifold cluster cordon east")
	}
	expect.Refused(s.T, s.Logical.Try("drain", "-l", "cluster=east"), "Forbidden", "manifold cluster cordon NAME")
	expect.Refused(s.T, s.Logical.Try("cordon", "east"), "Forbidden", "manifold cluster cordon east")
	expect.Refused(s.T, s.Logical.Try("uncordon", "east"), "Forbidden", "manifold cluster uncordon east")
	expect.Refused(s.T, s.Logical.TryCLI("kubectl", "drain", "east"), "Forbidden", "nothing was evicted")
	expect.Refused(s.T, s.Logical.Try("taint", "node", "east", "a=b:NoSchedule"), "Forbidden", "read-only")

	// Had anything been evicted, it would have been before this.
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=6")
	expect.RolledOut(s, "web", 6)
	stop()
	for _, pod := range before {
		if gone[pod.Name] {
			s.Errorf("pod %s was evicted", pod.Name)
		}
	}
	node, err := s.Logical.Kube.CoreV1().Nodes().Get(s.Context(), "east", getOptions)
	if err != nil || node.Spec.Unschedulable {
		s.Errorf("the node is cordoned: %+v, %v", node.Spec, err)
	}
}
