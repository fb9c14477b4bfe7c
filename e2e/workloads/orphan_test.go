package workloads

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// uidsOf are the UIDs of objects by their names.
func uidsOf[T framework.Object](objects []T) map[string]types.UID {
	out := map[string]types.UID{}
	for _, o := range objects {
		out[o.GetName()] = o.GetUID()
	}
	return out
}

// uncontrolled claims that there are just these objects, which nobody controls.
func uncontrolled[T framework.Object](want map[string]types.UID) func([]T) bool {
	return func(objects []T) bool {
		for _, o := range objects {
			if metav1.GetControllerOf(o) != nil || o.GetDeletionTimestamp() != nil {
				return false
			}
		}
		return maps.Equal(uidsOf(objects), want)
	}
}

// areThese claims that there are just these pods, and that all are ready.
func areThese(want map[string]types.UID) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(len(want))(pods) && maps.Equal(uidsOf(pods), want)
	}
}

// podsBelow are the pods in the clusters by their names.
func podsBelow(s *framework.Scenario, selector string) map[string]types.UID {
	s.Helper()
	out := map[string]types.UID{}
	for _, side := range []*framework.Side{s.East, s.West} {
		pods, err := side.Kube.CoreV1().Pods(s.Namespace).List(s.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			s.Fatal(err)
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil {
				out[pod.Name] = pod.UID
			}
		}
	}
	return out
}

func gone[T framework.Object](sides ...*framework.Side) func(name string) {
	return func(name string) {
		for _, side := range sides {
			framework.AwaitGone[T](side, name)
		}
	}
}

func TestPodsOutliveTheirOwner(t *testing.T) {
	s := suite.Scenario(t)
	everywhere := []*framework.Side{s.Logical, s.East, s.West}
	for name, test := range map[string]struct {
		kind, manifest string
		pods           int
		gone           func(name string)
		// again tells that a new owner of the name takes the pods over.
		again bool
	}{
		"rs": {"replicaset", replicaSet("rs", 4, "east,west"), 4, gone[*appsv1.ReplicaSet](everywhere...), true},
		"rc": {"replicationcontroller", replicationController("rc", 3, "east,west"), 3, gone[*corev1.ReplicationController](everywhere...), true},
		"st": {"statefulset", manifests.Database("st", 3, manifests.SetOn("west")), 3, gone[*appsv1.StatefulSet](everywhere...), true},
		"ds": {"daemonset", manifests.DaemonSet("ds", "east,west"), int(nodesOf(s, s.East) + nodesOf(s, s.West)), gone[*appsv1.DaemonSet](everywhere...), true},
		// A new Job has another selector.
		"jo": {"job", manifests.Job("jo", 2, 2, manifests.JobOn("east"), manifests.Outcome("stay")), 2, gone[*batchv1.Job](everywhere...), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, selector := s.Subtest(t), "app="+name
			s.Logical.Apply(test.manifest, manifests.ServiceFor(name))
			pods := framework.AwaitList(s.Logical, selector, "its pods run", expect.ReadyPods(test.pods))
			want := uidsOf(pods)
			services := map[string]types.UID{}
			for _, side := range []*framework.Side{s.East, s.West} {
				if found, err := side.Kube.CoreV1().Services(s.Namespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
					services[side.Name] = found.UID
				}
			}
			s.Logical.Kubectl("delete", test.kind, name, "--cascade=orphan", "--timeout=60s")
			test.gone(name)
			framework.AwaitList(s.Logical, selector, "the pods that were there are nobody's", uncontrolled[*corev1.Pod](want))
			if got := podsBelow(s, selector); !maps.Equal(got, want) {
				t.Errorf("the clusters run %v, want %v", got, want)
			}
			for _, side := range []*framework.Side{s.East, s.West} {
				if uid, had := services[side.Name]; had {
					framework.Await(side, name, "is still what it was", func(o *corev1.Service) bool { return o.UID == uid })
				}
			}
			s.Logical.Kubectl("logs", pods[0].Name, "--tail=1")
			if !test.again {
				s.Logical.Kubectl("delete", "pods", "-l", selector, "--timeout=60s")
				if got := podsBelow(s, selector); len(got) > 0 {
					t.Errorf("the clusters run %v after they were deleted", got)
				}
				return
			}
			s.Logical.Apply(test.manifest)
			framework.AwaitList(s.Logical, selector, "somebody controls the same pods again", func(pods []*corev1.Pod) bool {
				for _, pod := range pods {
					if ref := metav1.GetControllerOf(pod); ref == nil || ref.Name != name {
						return false
					}
				}
				return areThese(want)(pods)
			})
			if got := podsBelow(s, selector); !maps.Equal(got, want) {
				t.Errorf("the clusters run %v, want %v", got, want)
			}
			s.Logical.Kubectl("delete", test.kind, name, "--timeout=60s")
			test.gone(name)
			for _, side := range everywhere {
				framework.AwaitList(side, selector, "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
			}
		})
	}
}

// The common way to change what cannot be changed: the new StatefulSet takes over pods and claims, where they are.
func TestAStatefulSetIsMadeAnewAroundItsPods(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Disks(s.West, 3)
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("west"), manifests.WithDisks(s)))
	expect.SetRolledOut(s, "db", 3)
	pods := uidsOf(expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 3)))
	claims := uidsOf(framework.AwaitList(s.Logical, "", "the claims are shown", func(claims []*corev1.PersistentVolumeClaim) bool { return len(claims) == 3 }))
	s.Logical.Kubectl("delete", "statefulset", "db", "--cascade=orphan", "--timeout=60s")
	gone[*appsv1.StatefulSet](s.Logical, s.West)("db")
	s.Logical.Apply(manifests.Database("db", 3, manifests.WithDisks(s), func(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }))
	set := expect.SetRolledOut(s, "db", 3)
	if got := framework.DecisionOf(s, set); len(got) != 1 || got["west"].Replicas != 3 {
		t.Errorf("placed as %s, want it where its pods are", got)
	}
	framework.AwaitList(s.Logical, "app=db", "the same pods are its own", func(pods []*corev1.Pod) bool {
		return ownedBy(set, 3)(pods)
	})
	if got := podsBelow(s, "app=db"); !maps.Equal(got, pods) {
		t.Errorf("the clusters run %v, want %v", got, pods)
	}
	framework.AwaitList(s.Logical, "", "with the same claims", func(c []*corev1.PersistentVolumeClaim) bool { return maps.Equal(uidsOf(c), claims) })
	// From here on it is one like any other.
	s.Logical.Kubectl("set", "image", "statefulset/db", "db=db:2")
	s.Logical.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	expect.SetRolledOut(s, "db", 3)
}

// Operators make a StatefulSet anew to change it. What it is not to have any more goes, also where it is not placed any more, and its claims stay.
func TestAStatefulSetThatIsMadeAnewSmallerEndsThePodsThatAreLeft(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Dividing)
	expect.PolicyFollowed(s)
	defer watchOrdinals(s)()
	for _, side := range []*framework.Side{s.East, s.West} {
		s.Disks(side, 4)
	}
	both := manifests.SetOn("east,west")
	s.Logical.Apply(manifests.Database("db", 4, both, manifests.WithDisks(s)))
	if got := framework.DecisionOf(s, expect.SetRolledOut(s, "db", 4)); got["east"].Replicas != 2 || got["west"].Replicas != 2 {
		t.Fatalf("divided into %s, want 2 in each cluster", got)
	}
	first := uidsOf(expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 4)))
	claims := uidsOf(framework.AwaitList(s.Logical, "", "the claims are shown", func(claims []*corev1.PersistentVolumeClaim) bool { return len(claims) == 4 }))

	s.Logical.Kubectl("delete", "statefulset", "db", "--cascade=orphan", "--timeout=60s")
	s.Logical.Apply(manifests.Database("db", 1, both, manifests.WithDisks(s)))
	expect.SetRolledOut(s, "db", 1)
	left := uidsOf(expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 1)))
	if left["db-0"] != first["db-0"] {
		t.Errorf("db-0 is %v, want the one that was there, %v", left, first)
	}
	if got := podsBelow(s, "app=db"); !maps.Equal(got, left) {
		t.Errorf("the clusters run %v, want %v", got, left)
	}
	framework.AwaitList(s.Logical, "", "all claims are there", func(c []*corev1.PersistentVolumeClaim) bool { return maps.Equal(uidsOf(c), claims) })

	s.Logical.Kubectl("scale", "statefulset", "db", "--replicas=4")
	expect.SetRolledOut(s, "db", 4)
	expect.Pods(s.Logical, "app=db", manifests.Ordinals("db", 0, 4))
	framework.AwaitList(s.Logical, "", "with the same claims", func(c []*corev1.PersistentVolumeClaim) bool { return maps.Equal(uidsOf(c), claims) })
}

func TestReplicaSetsOutliveTheirDeployment(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"), manifests.ServiceFor("web"))
	expect.RolledOut(s, "web", 4)
	s.Logical.Kubectl("set", "image", "deployment/web", "*=web:2")
	expect.RolledOut(s, "web", 4)
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	pods := uidsOf(framework.AwaitList(s.Logical, "app=web", "its pods run", expect.ReadyPods(4)))
	sets := uidsOf(framework.AwaitList(s.Logical, "app=web", "an old and a new one", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 2 }))

	s.Logical.Kubectl("delete", "deployment", "web", "--cascade=orphan", "--timeout=60s")
	gone[*appsv1.Deployment](s.Logical, s.East, s.West)("web")
	framework.AwaitList(s.Logical, "app=web", "the ReplicaSets are nobody's", uncontrolled[*appsv1.ReplicaSet](sets))
	framework.AwaitList(s.Logical, "app=web", "their pods are the same", areThese(pods))
	left := framework.AwaitList(s.Logical, "app=web", "one of them serves as it did", func(sets []*appsv1.ReplicaSet) bool {
		return len(sets) == 2 && (serving(4)(sets[0]) || serving(4)(sets[1]))
	})
	current := left[0]
	if *current.Spec.Replicas == 0 {
		current = left[1]
	}
	framework.AwaitList(s.Logical, "", "no event warns of anything", func(events []*corev1.Event) bool {
		for _, e := range events {
			if e.Type == corev1.EventTypeWarning {
				t.Errorf("%s of %s %s: %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
			}
		}
		return true
	})
	// It is a ReplicaSet like any other from now on.
	s.Logical.Kubectl("scale", "replicaset", current.Name, "--replicas=5")
	framework.Await(s.Logical, current.Name, "serves as scaled", serving(5))
	s.Logical.Kubectl("scale", "replicaset", current.Name, "--replicas=4")
	framework.Await(s.Logical, current.Name, "serves as before", serving(4))
	framework.AwaitList(s.Logical, "app=web", "its pods run", expect.ReadyPods(4))

	// A Deployment of the same template takes over what it finds.
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"))
	s.Logical.Kubectl("set", "image", "deployment/web", "*=web:2")
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	d := expect.RolledOut(s, "web", 4)
	framework.Await(s.Logical, current.Name, "belongs to it", func(rs *appsv1.ReplicaSet) bool {
		return rs.UID == current.UID && metav1.IsControlledBy(rs, d)
	})
	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		framework.AwaitList(side, "app=web", "no ReplicaSet is left", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 0 })
		framework.AwaitList(side, "app=web", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	}
}

func TestOrphansGoWithTheirNamespace(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(replicaSet("set", 2, "east,west"), manifests.Pinned(manifests.Deployment("web", 2), "east"))
	framework.Await(s.Logical, "set", "serves", serving(2))
	expect.RolledOut(s, "web", 2)
	s.Logical.Kubectl("delete", "replicaset/set", "deployment/web", "--cascade=orphan", "--timeout=60s")
	framework.AwaitList(s.Logical, "app=set", "its pods stay", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(2)(pods) && metav1.GetControllerOf(pods[0]) == nil
	})
	s.Logical.Kubectl("delete", "namespace", s.Namespace, "--timeout=90s")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*corev1.Namespace](side, s.Namespace)
	}
}

// What a cluster was told to leave behind while nobody could reach it, it leaves behind once it is back: the logical cluster has forgotten
// the finalizer by then, and not what it said.
func TestOrphaningSurvivesARestart(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	s.Logical.Apply(replicaSet("set", 3, "east,west"))
	framework.Await(s.Logical, "set", "serves", serving(3))
	pods := uidsOf(framework.AwaitList(s.Logical, "app=set", "its pods run", expect.ReadyPods(3)))
	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "west", "is silent", membership.Readiness(metav1.ConditionUnknown))
	s.Logical.Kubectl("delete", "replicaset", "set", "--cascade=orphan", "--wait=false")
	framework.AwaitGone[*appsv1.ReplicaSet](s.East, "set")
	framework.Await(s.Logical, "set", "waits for the other cluster", func(rs *appsv1.ReplicaSet) bool {
		return len(rs.Finalizers) == 1
	})
	if err := s.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	gone[*appsv1.ReplicaSet](s.Logical, s.West)("set")
	framework.AwaitList(s.Logical, "app=set", "the pods that were there are nobody's", uncontrolled[*corev1.Pod](pods))
}
