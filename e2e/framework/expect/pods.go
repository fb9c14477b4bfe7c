package expect

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// Ready reports whether a pod is ready and not being deleted.
func Ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// ReadyPods claims that there are that many pods and all are ready.
func ReadyPods(count int) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if !Ready(pod) {
				return false
			}
		}
		return len(pods) == count
	}
}

// Pods waits until a side has exactly the pods with these names, ready.
func Pods(side *framework.Side, selector string, want []string) []*corev1.Pod {
	return framework.AwaitList(side, selector, "there are "+strings.Join(want, ", "), func(pods []*corev1.Pod) bool {
		var got []string
		for _, pod := range pods {
			got = append(got, pod.Name)
		}
		slices.Sort(got)
		return slices.Equal(got, want) && ReadyPods(len(want))(pods)
	})
}

// ReadyNow returns the ready pods of an app in clusters. They answer one after the other, and a replica may go from one to the other in
// between. So they are asked in two rounds, and a pod that was ready in either may have been so between the two. Answered is false if a
// cluster gave no answer, as when the test has ended.
func ReadyNow(s *framework.Scenario, sides []*framework.Side, app string) (pods []string, answered bool) {
	for range 2 {
		for _, side := range sides {
			list, err := side.Kube.CoreV1().Pods(s.Namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
			if err != nil {
				return nil, false
			}
			for i := range list.Items {
				if pod := &list.Items[i]; Ready(pod) {
					pods = append(pods, side.Name+"/"+pod.Name)
				}
			}
		}
	}
	slices.Sort(pods)
	return slices.Compact(pods), true
}

// FewestReady counts the ready pods of an app in clusters from now on. What it returns ends that and tells the smallest number.
func FewestReady(s *framework.Scenario, sides []*framework.Side, app string, want int) func() int {
	s.Helper()
	low, begun := want, false
	stop := framework.Watch(sides, func(now map[string][]*corev1.Pod) {
		seen := 0
		for _, pods := range now {
			for _, pod := range pods {
				if pod.Labels["app"] == app && Ready(pod) {
					seen++
				}
			}
		}
		// At first, not all have been listed. Later one watch may be behind another: what the clusters say themselves counts.
		if begun = begun || seen >= want; !begun || seen >= low {
			return
		}
		if live, answered := ReadyNow(s, sides, app); answered {
			low = min(low, len(live))
		}
	})
	return func() int {
		stop()
		return low
	}
}

// WatchReady is FewestReady in the two clusters that every test has.
func WatchReady(s *framework.Scenario, name string, want int) (fewest func() int) {
	s.Helper()
	return FewestReady(s, []*framework.Side{s.East, s.West}, name, want)
}
