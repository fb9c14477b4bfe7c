package workloads

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestAStatefulSetRunsWholeInOneCluster(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("east,west")))
	s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	set := expect.SetRolledOut(s, "db", 3)
	if set.Annotations[v1alpha1.AnnotationPlacement] != `{"east":{"replicas":3}}` && set.Annotations[v1alpha1.AnnotationPlacement] != `{"west":{"replicas":3}}` {
		t.Errorf("placed on %s, want the whole in one cluster", set.Annotations[v1alpha1.AnnotationPlacement])
	}
	side, other := s.East, s.West
	if strings.Contains(set.Annotations[v1alpha1.AnnotationPlacement], "west") {
		side, other = other, side
	}
	expect.Pods(side, "app=db", manifests.Ordinals("db", 0, 3))
	expect.Pods(other, "app=db", nil)
	mirrors := expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 3))
	for _, pod := range mirrors {
		if owner := pod.OwnerReferences; len(owner) != 1 || owner[0].UID != set.UID {
			t.Errorf("pod %s belongs to %v, want the StatefulSet", pod.Name, owner)
		}
	}
	framework.Await(side, "db-peers", "came with the StatefulSet", func(svc *corev1.Service) bool { return svc.Spec.ClusterIP == "None" })
	expect.Says(t, s.Logical.Kubectl("get", "statefulset", "db"), "3/3")
	expect.Says(t, s.Logical.Kubectl("describe", "statefulset", "db"), "3 desired | 3 total", "SuccessfulCreate")

	t.Run("kubectl wait", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("wait", "statefulset/db", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=60s")
	})
	t.Run("a deleted pod comes back under its name", func(t *testing.T) {
		s := s.Subtest(t)
		before := framework.Await(s.Logical, "db-0", "is ready", expect.Ready)
		s.Logical.Kubectl("delete", "pod", "db-0")
		framework.Await(s.Logical, "db-0", "is another one", func(pod *corev1.Pod) bool { return pod.UID != before.UID && expect.Ready(pod) })
		expect.SetRolledOut(s, "db", 3)
	})
	t.Run("scale", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=5")
		expect.SetRolledOut(s, "db", 5)
		expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 5))
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=2")
		expect.SetRolledOut(s, "db", 2)
		expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 2))
	})
	t.Run("rollout restart", func(t *testing.T) {
		s := s.Subtest(t)
		before := framework.Await(s.Logical, "db-1", "is ready", expect.Ready)
		s.Logical.Kubectl("rollout", "restart", "statefulset/db")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		if after := framework.Await(s.Logical, "db-1", "is ready", expect.Ready); after.UID == before.UID {
			t.Error("it reads as rolled out, but the pod is the one of before")
		}
	})
	t.Run("rollout history and undo", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("set", "image", "statefulset/db", "db=db:2")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		set := expect.SetRolledOut(s, "db", 2)
		expect.Says(t, s.Logical.Kubectl("rollout", "history", "statefulset/db", "--revision=3"), "db:2")
		expect.Says(t, s.Logical.Kubectl("rollout", "history", "statefulset/db", "--revision=1"), "db:1")
		for _, pod := range framework.AwaitList(s.Logical, "app=db", "both pods are ready", expect.ReadyPods(2)) {
			if got := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; got != set.Status.UpdateRevision {
				t.Errorf("pod %s is of revision %q, want %q", pod.Name, got, set.Status.UpdateRevision)
			}
		}
		s.Logical.Kubectl("rollout", "undo", "statefulset/db", "--to-revision=1")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		expect.Says(t, s.Logical.Kubectl("rollout", "history", "statefulset/db", "--revision=4"), "db:1")
		expect.Says(t, s.Logical.Kubectl("rollout", "undo", "statefulset/db", "--to-revision=4"), "already matches revision 4")
		framework.Await(s.Logical, "db-1", "has the image of before", func(pod *corev1.Pod) bool {
			return pod.Spec.Containers[0].Image == "db:1" && expect.Ready(pod)
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
		expect.Pods(side, "app=db", nil)
		expect.Pods(s.Logical, "app=db", nil)
		framework.AwaitList(s.Logical, "", "its history goes with it", func(list []*appsv1.ControllerRevision) bool { return len(list) == 0 })
	})
}

// watchOrdinals fails the test if a pod of a name is in both clusters at once, until the function that it returns is called.
func watchOrdinals(s *framework.Scenario) (stop func()) {
	s.Helper()
	return framework.Watch([]*framework.Side{s.East, s.West}, func(now map[string][]*corev1.Pod) {
		for _, east := range now["east"] {
			for _, west := range now["west"] {
				// One watch may be behind the other. What is there now was there when the later one was made.
				if east.Name == west.Name && isThere(s.East, east) && isThere(s.West, west) {
					s.Errorf("pod %s is in both clusters", east.Name)
				}
			}
		}
	})
}

func isThere(side *framework.Side, pod *corev1.Pod) bool {
	now, err := side.Kube.CoreV1().Pods(pod.Namespace).Get(side.Context(), pod.Name, metav1.GetOptions{})
	return err == nil && now.UID == pod.UID
}

func TestAStatefulSetIsDividedByOrdinals(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Dividing)
	expect.PolicyFollowed(s)
	stop := watchOrdinals(s)
	defer stop()
	s.Logical.Apply(manifests.Database("db", 6))
	s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	set := expect.SetRolledOut(s, "db", 6)
	if got, want := set.Annotations[v1alpha1.AnnotationPlacement], `{"east":{"replicas":3},"west":{"replicas":3,"start":3}}`; got != want {
		t.Errorf("placed on %s, want %s", got, want)
	}
	expect.Pods(s.East, "app=db", manifests.Ordinals("db", 0, 3))
	expect.Pods(s.West, "app=db", manifests.Ordinals("db", 3, 6))
	for _, pod := range expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 6)) {
		if got := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; got != set.Status.UpdateRevision {
			t.Errorf("pod %s is of revision %q, want %q in every cluster", pod.Name, got, set.Status.UpdateRevision)
		}
	}
	expect.Says(t, s.Logical.CLI("explain", "statefulset/db"), "PlacementPolicy", "divide", "ordinals 0-2", "ordinals 3-5")

	t.Run("scaled up, it goes on from the highest", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=8")
		expect.SetRolledOut(s, "db", 8)
		expect.Pods(s.East, "app=db", manifests.Ordinals("db", 0, 3))
		expect.Pods(s.West, "app=db", manifests.Ordinals("db", 3, 8))
	})
	t.Run("a partition counts over all clusters", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("patch", "statefulset", "db", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":5}}}}`)
		s.Logical.Kubectl("set", "image", "statefulset/db", "db=db:2")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		images := func(want string) func([]*corev1.Pod) bool {
			return func(pods []*corev1.Pod) bool {
				slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
				var got []string
				for _, pod := range pods {
					got = append(got, strings.TrimPrefix(pod.Spec.Containers[0].Image, "db:"))
				}
				return strings.Join(got, "") == want && expect.ReadyPods(8)(pods)
			}
		}
		framework.AwaitList(s.Logical, "app=db", "the highest three are updated", images("11111222"))
		partly := framework.Await(s.Logical, "db", "counts them", func(set *appsv1.StatefulSet) bool { return set.Status.UpdatedReplicas == 3 })
		if partly.Status.CurrentReplicas != 5 || partly.Status.CurrentRevision == partly.Status.UpdateRevision {
			t.Errorf("status %+v, want five of the current revision", partly.Status)
		}
		s.Logical.Kubectl("patch", "statefulset", "db", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		expect.SetRolledOut(s, "db", 8)
		framework.AwaitList(s.Logical, "app=db", "all are updated", images("22222222"))
	})
	t.Run("undone, in every cluster, the higher ordinals first", func(t *testing.T) {
		s := s.Subtest(t)
		stop := framework.Watch([]*framework.Side{s.East, s.West}, func(now map[string][]*corev1.Pod) {
			begun := slices.ContainsFunc(now["east"], func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == "db:1" })
			for _, pod := range now["west"] {
				if begun && pod.Spec.Containers[0].Image != "db:1" && isThere(s.West, pod) {
					s.Errorf("pods of the lower ordinals are updated, and %s is not", pod.Name)
				}
			}
		})
		defer stop()
		s.Logical.Kubectl("rollout", "undo", "statefulset/db")
		s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
		expect.SetRolledOut(s, "db", 8)
		for _, side := range []*framework.Side{s.East, s.West} {
			framework.AwaitList(side, "app=db", "all have the image of before", func(pods []*corev1.Pod) bool {
				return len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image != "db:1" })
			})
		}
	})
	t.Run("a pod of the second cluster comes back there", func(t *testing.T) {
		s := s.Subtest(t)
		before := framework.Await(s.Logical, "db-6", "is ready", expect.Ready)
		s.Logical.Kubectl("delete", "pod", "db-6")
		after := framework.Await(s.Logical, "db-6", "is another one", func(pod *corev1.Pod) bool { return pod.UID != before.UID && expect.Ready(pod) })
		if after.Spec.NodeName != "west" {
			t.Errorf("it is on %s now", after.Spec.NodeName)
		}
		expect.SetRolledOut(s, "db", 8)
	})
	t.Run("scaled down, it loses the highest", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("scale", "statefulset/db", "--replicas=2")
		expect.SetRolledOut(s, "db", 2)
		expect.Pods(s.East, "app=db", manifests.Ordinals("db", 0, 2))
		framework.AwaitGone[*appsv1.StatefulSet](s.West, "db")
		expect.Pods(s.West, "app=db", nil)
	})
}

func TestAStatefulSetMovesWithoutRunningTwice(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	stop := watchOrdinals(s)
	defer stop()
	slow := func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](2) }
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("east"), slow))
	expect.SetRolledOut(s, "db", 3)
	for _, cluster := range []string{"west", "east"} {
		to, from := s.Side(cluster), s.East
		if cluster == "east" {
			from = s.West
		}
		fewest := expect.WatchReady(s, "db", 3)
		s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"="+cluster, "--overwrite")
		expect.Pods(to, "app=db", manifests.Ordinals("db", 0, 3))
		expect.Pods(from, "app=db", nil)
		framework.AwaitGone[*appsv1.StatefulSet](from, "db")
		expect.SetRolledOut(s, "db", 3)
		if few := fewest(); few < 2 {
			t.Errorf("once there were only %d ready pods in both clusters, want 2: one ordinal moves at a time", few)
		}
	}
	// A pod that does not go is waited for, and the user is told.
	s.East.Kubectl("patch", "pod", "db-0", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	framework.AwaitList(s.Logical, "", "an event tells who waits for whom", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.Reason == "WaitingForCluster" && strings.Contains(e.Message, `cluster "west" waits for ordinals 0-2`)
		})
	})
	framework.AwaitList(s.East, "app=db", "all others are gone", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].Name == "db-0" && pods[0].DeletionTimestamp != nil
	})
	expect.Pods(s.West, "app=db", manifests.Ordinals("db", 1, 3))
	s.East.Kubectl("patch", "pod", "db-0", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	expect.Pods(s.West, "app=db", manifests.Ordinals("db", 0, 3))
	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	expect.Pods(s.East, "app=db", manifests.Ordinals("db", 0, 3))
	expect.SetRolledOut(s, "db", 3)
	// Deleted and made anew elsewhere before its pods are gone, it waits for them as well.
	s.Logical.Kubectl("delete", "statefulset", "db", "--wait=false")
	framework.AwaitGone[*appsv1.StatefulSet](s.Logical, "db")
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("west")))
	expect.SetRolledOut(s, "db", 3)
	expect.Pods(s.West, "app=db", manifests.Ordinals("db", 0, 3))
}

// What a StatefulSet keeps for its volumes is not thrown away with a cluster that it leaves.
func TestClaimsOutliveThePartOfACluster(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	withData := func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
			WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		}
	}
	claims := func(side *framework.Side) string { return side.Kubectl("get", "persistentvolumeclaims", "-o", "name") }
	s.Logical.Apply(manifests.Database("db", 2, manifests.SetOn("east"), withData))
	framework.Await(s.East, "db", "has its pods", func(set *appsv1.StatefulSet) bool { return set.Status.Replicas == 2 })
	expect.Says(t, claims(s.East), "data-db-0", "data-db-1")

	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	framework.Await(s.West, "db", "has its pods", func(set *appsv1.StatefulSet) bool { return set.Status.Replicas == 2 })
	framework.AwaitGone[*appsv1.StatefulSet](s.East, "db")
	expect.Says(t, claims(s.East), "data-db-0", "data-db-1")
	expect.Says(t, claims(s.West), "data-db-0", "data-db-1")

	s.Logical.Kubectl("delete", "statefulset", "db", "--timeout=60s")
	s.West.Poll("the claims go with the StatefulSet, as it says", func() error {
		if got := claims(s.West); got != "" {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
}
