package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// bring makes a PriorityClass in an API, which goes when the test ends.
func bring(s *framework.Scenario, in *framework.Side, name string, value int) {
	s.Helper()
	in.Kubectl("create", "priorityclass", name, fmt.Sprintf("--value=%d", value))
	s.Cleanup(func() { s.Environment.CleanupIn(s.T, in.API, "delete", "priorityclass", name, "--ignore-not-found") })
}

func TestAnApplicationBringsAPriorityClass(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-priority-classes", "1000")
	north := s.Side("north")
	name := s.Namespace // free in every API
	low, high, others := name+"-low", name+"-high", name+"-others"
	bring(s, s.Logical, low, 500)
	bring(s, s.Logical, high, 1001)
	bring(s, s.Logical, others, 600)
	bring(s, north, others, 3)

	s.Logical.Apply(important("web", low, 1))
	expect.Shares(s, "web", placement.Decision{"north": {Replicas: 1}})
	expect.RolledOut(s, "web", 1)
	class, err := north.Kube.SchedulingV1().PriorityClasses().Get(t.Context(), low, metav1.GetOptions{})
	if err != nil || class.Value != 500 || class.Labels[v1alpha1.LabelLogicalCluster] != framework.IdentityOf(t, s.Environment) {
		t.Errorf("north has %+v, %v", class, err)
	}
	framework.AwaitList(north, "app=web", "the pod has the priority", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].Spec.Priority != nil && *pods[0].Spec.Priority == 500
	})

	// Not above the bound, by whomever.
	s.Logical.Apply(important("grand", high, 1))
	expect.Unplaced(s, "grand", "lack PriorityClass "+high)
	expect.Says(t, s.Logical.CLI("explain", "deployment/grand"), "manifold cluster join north --cluster-kubeconfig FILE --allow-priority-classes=1001")
	syncer := north.As(membership.StoredCredential(s, "north"))
	own := func(class string, value int, labels string) string {
		return fmt.Sprintf("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s, labels: {%s}}\nvalue: %d\n", class, labels, value)
	}
	mark := v1alpha1.LabelLogicalCluster + ": " + framework.IdentityOf(t, s.Environment)
	expect.Refused(t, syncer.TryInput(own(high, 1001, mark), "create", "-f", "-"), "Manifold may only create PriorityClasses of a value up to 1000 here")
	expect.Refused(t, syncer.TryInput(own(high, 10, ""), "create", "-f", "-"), "Manifold does not own")
	expect.Refused(t, syncer.TryInput(own(high, 10, mark)+"globalDefault: true\n", "create", "-f", "-"), "with globalDefault: true")
	expect.Refused(t, syncer.Try("delete", "priorityclass", others), "Manifold does not own")

	// One of somebody else's is used as it is.
	s.Logical.Apply(manifests.Pinned(important("guest", others, 1), "north"))
	expect.RolledOut(s, "guest", 1)
	if class, err := north.Kube.SchedulingV1().PriorityClasses().Get(t.Context(), others, metav1.GetOptions{}); err != nil || class.Value != 3 || len(class.Labels) > 0 {
		t.Errorf("the class of somebody else is %+v, %v", class, err)
	}

	// Joining again keeps it, and raises it when told to.
	expect.Says(t, s.Logical.CLI("cluster", "check", "north", "--cluster-kubeconfig", s.Environment.Clusters["north"].Kubeconfig()), "✓")
	membership.Join(s, "north")
	if got := s.Logical.Kubectl("get", "cluster", "north", "-o", "jsonpath={.spec.allows.priorityClassesUpTo}"); got != "1000" {
		t.Errorf("it allows up to %q, want 1000", got)
	}
	membership.Join(s, "north", "--allow-priority-classes", "2000")
	expect.Shares(s, "grand", placement.Decision{"north": {Replicas: 1}})
	expect.RolledOut(s, "grand", 1)

	// It leaves with the last who names it.
	s.Logical.Kubectl("delete", "deployment", "web")
	framework.AwaitGone[*schedulingv1.PriorityClass](north, low)
}
