package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// database is a StatefulSet with its headless Service, which has no selector that meets the pods: its name alone brings it along.
func database(name string, replicas int, edits ...func(*appsv1.StatefulSet)) string {
	manifest := fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: %[1]s
spec:
  replicas: %[2]d
  serviceName: %[1]s-peers
  selector:
    matchLabels:
      app: %[1]s
  template:
    metadata:
      labels:
        app: %[1]s
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: %[1]s
        image: %[1]s:1
`, name, replicas)
	var set appsv1.StatefulSet
	if err := yaml.Unmarshal([]byte(manifest), &set); err != nil {
		panic(err)
	}
	for _, edit := range edits {
		edit(&set)
	}
	data, err := yaml.Marshal(&set)
	if err != nil {
		panic(err)
	}
	return string(data) + fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata:
  name: %s-peers
spec:
  clusterIP: None
  selector:
    app: somebody-else
  ports:
  - port: 5432
`, name)
}

// setOn pins a StatefulSet.
func setOn(clusters string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Annotations = map[string]string{v1alpha1.AnnotationClusters: clusters}
	}
}

// allRun claims that all replicas are updated and ready, as "kubectl rollout status" understands it.
func allRun(replicas int32) func(*appsv1.StatefulSet) bool {
	return func(set *appsv1.StatefulSet) bool {
		s := set.Status
		return s.ObservedGeneration >= set.Generation && s.Replicas == replicas && s.ReadyReplicas == replicas &&
			s.AvailableReplicas == replicas && s.UpdatedReplicas == replicas && s.CurrentReplicas == replicas &&
			s.CurrentRevision == s.UpdateRevision
	}
}

func awaitRunning(s *framework.Scenario, name string, replicas int32) *appsv1.StatefulSet {
	s.Helper()
	return framework.Await(s.Logical, name, "is rolled out", allRun(replicas))
}

// ordinals are the names of pods of a StatefulSet from one ordinal on, up to another one, without it.
func ordinals(name string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%s-%d", name, i))
	}
	return out
}

// awaitPods waits until a side has exactly the pods with these names, ready.
func awaitPods(side *framework.Side, selector string, want []string) []*corev1.Pod {
	return framework.AwaitList(side, selector, "there are "+strings.Join(want, ", "), func(pods []*corev1.Pod) bool {
		var got []string
		for _, pod := range pods {
			got = append(got, pod.Name)
		}
		slices.Sort(got)
		return slices.Equal(got, want) && readyPods(len(want))(pods)
	})
}

func TestAStatefulSetRunsWholeInOneCluster(t *testing.T) {
	s := scenario(t)
	s.Logical.Apply(database("db", 3, setOn("east,west")))
	s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	set := awaitRunning(s, "db", 3)
	if set.Annotations[v1alpha1.AnnotationPlacement] != `{"east":{"replicas":3}}` && set.Annotations[v1alpha1.AnnotationPlacement] != `{"west":{"replicas":3}}` {
		t.Errorf("placed on %s, want the whole in one cluster", set.Annotations[v1alpha1.AnnotationPlacement])
	}
	side, other := s.East, s.West
	if strings.Contains(set.Annotations[v1alpha1.AnnotationPlacement], "west") {
		side, other = other, side
	}
	awaitPods(side, "app=db", ordinals("db", 0, 3))
	awaitPods(other, "app=db", nil)
	mirrors := awaitPods(s.Logical, "app=db", ordinals("db", 0, 3))
	for _, pod := range mirrors {
		if owner := pod.OwnerReferences; len(owner) != 1 || owner[0].UID != set.UID {
			t.Errorf("pod %s belongs to %v, want the StatefulSet", pod.Name, owner)
		}
	}
	framework.Await(side, "db-peers", "came with the StatefulSet", func(svc *corev1.Service) bool { return svc.Spec.ClusterIP == "None" })
	say(t, s.Logical.Kubectl("get", "statefulset", "db"), "3/3")
	say(t, s.Logical.Kubectl("describe", "statefulset", "db"), "3 desired | 3 total", "SuccessfulCreate")

	t.Run("kubectl wait", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("wait", "statefulset/db", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=60s")
	})
	t.Run("a deleted pod comes back under its name", func(t *testing.T) {
		s := s.Subtest(t)
		before := framework.Await(s.Logical, "db-0", "is ready", ready)
		s.Logical.Kubectl("delete", "pod", "db-0")
		framework.Await(s.Logical, "db-0", "is another one", func(pod *corev1.Pod) bool { return pod.UID != before.UID && ready(pod) })
		awaitRunning(s, "db", 3)
	})
	t.Run("scale", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=5")
		awaitRunning(s, "db", 5)
		awaitPods(s.Logical, "app=db", ordinals("db", 0, 5))
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=2")
		awaitRunning(s, "db", 2)
		awaitPods(s.Logical, "app=db", ordinals("db", 0, 2))
	})
	t.Run("rollout restart", func(t *testing.T) {
		s := s.Subtest(t)
		before := framework.Await(s.Logical, "db-1", "is ready", ready)
		s.Logical.Kubectl("rollout", "restart", "statefulset/db")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		if after := framework.Await(s.Logical, "db-1", "is ready", ready); after.UID == before.UID {
			t.Error("it reads as rolled out, but the pod is the one of before")
		}
	})
	t.Run("rollout history and undo", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("set", "image", "statefulset/db", "db=db:2")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		set := awaitRunning(s, "db", 2)
		say(t, s.Logical.Kubectl("rollout", "history", "statefulset/db", "--revision=3"), "db:2")
		say(t, s.Logical.Kubectl("rollout", "history", "statefulset/db", "--revision=1"), "db:1")
		for _, pod := range framework.AwaitList(s.Logical, "app=db", "both pods are ready", readyPods(2)) {
			if got := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; got != set.Status.UpdateRevision {
				t.Errorf("pod %s is of revision %q, want %q", pod.Name, got, set.Status.UpdateRevision)
			}
		}
		s.Logical.Kubectl("rollout", "undo", "statefulset/db", "--to-revision=1")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		say(t, s.Logical.Kubectl("rollout", "history", "statefulset/db", "--revision=4"), "db:1")
		say(t, s.Logical.Kubectl("rollout", "undo", "statefulset/db", "--to-revision=4"), "already matches revision 4")
		framework.Await(s.Logical, "db-1", "has the image of before", func(pod *corev1.Pod) bool {
			return pod.Spec.Containers[0].Image == "db:1" && ready(pod)
		})
		revisions := framework.AwaitList(s.Logical, "app=db", "there is one for each template", func(list []*appsv1.ControllerRevision) bool {
			return len(list) == 3
		})
		for _, revision := range revisions {
			if owner := revision.OwnerReferences; len(owner) != 1 || owner[0].UID != set.UID {
				t.Errorf("revision %s belongs to %v, want the StatefulSet", revision.Name, owner)
			}
		}
		s.Logical.Kubectl("patch", "statefulset", "db", "-p", `{"spec":{"revisionHistoryLimit":1}}`)
		framework.AwaitList(s.Logical, "app=db", "old ones are pruned", func(list []*appsv1.ControllerRevision) bool { return len(list) == 2 })
	})
	t.Run("delete", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("delete", "statefulset", "db", "--timeout=60s")
		framework.AwaitGone[*appsv1.StatefulSet](side, "db")
		awaitPods(side, "app=db", nil)
		awaitPods(s.Logical, "app=db", nil)
		framework.AwaitList(s.Logical, "", "its history goes with it", func(list []*appsv1.ControllerRevision) bool { return len(list) == 0 })
	})
}
