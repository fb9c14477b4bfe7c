package workloads

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

func TestDeletingAboveLeavesNothingBelow(t *testing.T) {
	s := suite.Fragile(t)
	sides := []*framework.Side{s.East, s.West}
	s.Logical.Apply(manifests.App)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	expect.RolledOut(s, "web", 4)
	// Somebody else uses the namespace in one of the clusters.
	check := membership.Bystanders(s, s.East)
	for _, side := range sides {
		if have := membership.InNamespace(membership.Objects(t.Context(), t, side.API, membership.Owned(s)), s.Namespace); len(have) < len(manifests.AppDependents)+2 {
			t.Errorf("%s has only %v", side.Name, have)
		}
	}

	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	for _, side := range sides {
		awaitLeft(s, side, "[namespaces /"+s.Namespace+"]")
		framework.AwaitList(side, "app=web", "there are no pods", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
		framework.AwaitList(side, "app=web", "there are no ReplicaSets", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 0 })
	}
	check()
	framework.AwaitList(s.Logical, "app=web", "there are no pods above", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	framework.AwaitList(s.Logical, "app=web", "there are no ReplicaSets above", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 0 })
	s.Logical.Kubectl("get", "configmap", "env") // What is the user's, and nobody deleted, stays.

	// It can come again under the same names. Pods that end at once keep Kubernetes from waiting long before it looks at the namespace again.
	s.Logical.Apply(manifests.App)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	s.Logical.Kubectl("patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`)
	expect.RolledOut(s, "web", 4)
	// The namespace takes everything with it that is in it, in whatever order, but not what is somebody else's.
	s.Logical.Kubectl("delete", "namespace", s.Namespace, "--timeout=60s")
	framework.AwaitGone[*corev1.Namespace](s.West, s.Namespace)
	for _, side := range sides {
		awaitLeft(s, side, "[]")
	}
	check()
	framework.Await(s.East, s.Namespace, "is left to those who use it", func(n *corev1.Namespace) bool { return len(membership.Marks(n)) == 0 })
}

// awaitLeft waits until what the logical cluster owns of the scenario's namespace in a cluster is just that.
func awaitLeft(s *framework.Scenario, side *framework.Side, want string) {
	s.Helper()
	side.Poll("of what Manifold owns there, only this is left: "+want, func() error {
		left := membership.InNamespace(membership.Objects(side.Context(), s.T, side.API, membership.Owned(s)), s.Namespace)
		if slices.ContainsFunc(left, func(f membership.Object) bool { return f.Resource.Resource == "namespaces" }) {
			// The right to read Secrets in a namespace of ours stays as long as that does.
			left = slices.DeleteFunc(left, func(f membership.Object) bool { return f.Resource.Resource == "rolebindings" })
		}
		if got := fmt.Sprint(left); got != want {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
}

func TestADeletedWorkloadCanBeCreatedAgainAtOnce(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	old := expect.RolledOut(s, "web", 2)
	s.Logical.Kubectl("delete", "deployment", "web", "--wait=false")
	s.Logical.KubectlInput(manifests.Deployment("web", 1), "create", "-f", "-")
	if renewed := expect.RolledOut(s, "web", 1); renewed.UID == old.UID {
		t.Errorf("the Deployment is the old one, %s", old.UID)
	}
}

func TestEveryWayOfDeletingEnds(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	expect.RolledOut(s, "web", 2)
	for _, cascade := range []string{"foreground", "background"} {
		s.Logical.Kubectl("delete", "deployment", "web", "--cascade="+cascade, "--timeout=60s")
		for _, side := range []*framework.Side{s.East, s.West} {
			framework.AwaitGone[*appsv1.Deployment](side, "web")
			framework.AwaitList(side, "app=web", "there are no pods", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
		}
		framework.AwaitList(s.Logical, "app=web", "there are no pods above", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
		s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
		expect.RolledOut(s, "web", 2)
	}
}
