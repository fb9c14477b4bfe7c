package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestARemovedClusterIsEmptiedWithoutAnOutage(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north")
	north := s.Side("north")
	sides := []*framework.Side{north, s.East, s.West}
	s.Logical.Apply(manifests.App)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=*", "--overwrite")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=6")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("stuck", 2), "north"), manifests.Pinned(manifests.Deployment("all", 3), "north,east"))
	d := expect.RolledOut(s, "web", 6)
	expect.RolledOut(s, "stuck", 2)
	expect.RolledOut(s, "all", 3)
	if framework.DecisionOf(s, d)["north"].Replicas == 0 {
		t.Fatalf("nothing is to move off: it is decided %s", framework.DecisionOf(s, d))
	}
	check := membership.Bystanders(s, north)
	pods := framework.PodUIDs(s, north, "stuck")
	fewest := map[string]func() int{}
	for app, want := range map[string]int{"web": 6, "all": 3, "stuck": 2} {
		fewest[app] = expect.FewestReady(s, sides, app, want)
	}

	// What is pinned there alone cannot leave, and is not broken for that. The rest goes meanwhile.
	expect.Refused(t, s.Logical.TryCLI("cluster", "remove", "north"),
		`cluster "north" is not removed because not everything can move off it, and it is as before`, s.Namespace+"/stuck", "--orphan", "--force")
	framework.Await(s.Logical, "web", "has moved off", expect.PlacedOn(s, "east", "west"))
	framework.AwaitGone[*appsv1.Deployment](north, "web")
	if got := framework.PodUIDs(s, north, "stuck"); !slices.Equal(got, pods) {
		t.Errorf("the pods that have nowhere else to go were %v and are %v", pods, got)
	}
	framework.Await(s.Logical, "north", "is not being drained any more", func(c *v1alpha1.Cluster) bool {
		return !c.Spec.Unschedulable && len(c.Spec.Taints) == 0 && c.DeletionTimestamp == nil
	})

	s.Logical.Kubectl("annotate", "deployment", "stuck", v1alpha1.AnnotationClusters+"=*", "--overwrite")
	expect.Says(t, s.Logical.CLI("cluster", "remove", "north", "--cluster-kubeconfig", north.Kubeconfig, "--timeout=60s"), "cluster/north removed")

	check()
	if left := membership.Objects(t.Context(), t, north.API, membership.Owned(s), membership.Managed); len(left) > 0 {
		t.Errorf("these are left in the cluster: %v", left)
	}
	if _, err := north.Kube.CoreV1().Namespaces().Get(t.Context(), v1alpha1.SystemNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s in the cluster: %v", v1alpha1.SystemNamespace, err)
	}
	checkForgotten(s, "north")
	for app, want := range map[string]int32{"web": 6, "all": 3, "stuck": 2} {
		expect.RolledOut(s, app, want)
		if few := fewest[app](); few < int(want) {
			t.Errorf("once only %d pods of %s were ready in all clusters, want %d at every moment", few, app, want)
		}
	}
	expect.Refused(t, s.Logical.TryCLI("cluster", "remove", "north"), `"north" not found`)
}

// checkForgotten checks that nothing above tells of a cluster that was removed.
func checkForgotten(s *framework.Scenario, name string) {
	s.Helper()
	framework.AwaitGone[*v1alpha1.Cluster](s.Logical, name)
	framework.AwaitGone[*corev1.Node](s.Logical, name)
	framework.AwaitGone[*corev1.Secret](s.Logical.In(v1alpha1.SystemNamespace), "cluster-"+name)
	framework.AwaitGone[*coordinationv1.Lease](s.Logical.In(v1alpha1.SystemNamespace), "cluster-"+name)
	framework.AwaitList(s.Logical, "", "no pod is said to run there", func(pods []*corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == name })
	})
}

func TestAnOrphanedClusterKeepsWhatRunsThere(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north")
	north := s.Side("north")
	s.Logical.Apply(manifests.App)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=north", "--overwrite")
	expect.RolledOut(s, "web", 2)
	framework.AwaitGone[*appsv1.Deployment](s.East, "web")
	s.Cleanup(func() { s.Environment.CleanupIn(t, north.API, "delete", "namespace", s.Namespace, "--wait=false") })
	pods, had := framework.PodUIDs(s, north, "web"), membership.InNamespace(membership.Objects(t.Context(), t, north.API, membership.Owned(s)), s.Namespace)

	expect.Refused(t, s.Logical.TryCLI("cluster", "remove", "north", "--orphan", "--force"), "exclude each other")
	expect.Says(t, s.Logical.CLI("cluster", "remove", "north", "--orphan", "--cluster-kubeconfig", north.Kubeconfig, "--timeout=60s"), "cluster/north removed")

	checkForgotten(s, "north")
	if left := membership.Objects(t.Context(), t, north.API, membership.Owned(s), membership.Managed); len(left) > 0 {
		t.Errorf("these still carry marks: %v", left)
	}
	for _, f := range had {
		if f.Resource.Resource == "rolebindings" {
			continue // the right to read Secrets there, which is given back
		}
		o, err := north.Dynamic.Resource(f.Resource).Namespace(f.Namespace).Get(t.Context(), f.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			t.Errorf("%s was not left there: %v", f, err)
		case o.GetUID() != f.UID || len(membership.Marks(o)) > 0:
			t.Errorf("%s is another one than before, or carries %q", f, membership.Marks(o))
		}
	}
	if got := framework.PodUIDs(s, north, "web"); !slices.Equal(got, pods) || len(got) != 2 {
		t.Errorf("the pods were %v and are %v", pods, got)
	}
	// Above, nothing is stuck on what was let go; below, nothing depends on what is above.
	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	s.Logical.Kubectl("delete", "namespace", s.Namespace, "--timeout=60s")
	framework.Await(north, "web", "still runs", expect.Available(2))
	if got := framework.PodUIDs(s, north, "web"); !slices.Equal(got, pods) {
		t.Errorf("the pods were %v and are %v", pods, got)
	}
}

func TestAClusterThatIsGoneForGoodLeavesNothingStuck(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north")
	s.Logical.Apply(quick(manifests.Pinned(manifests.Deployment("lost", 2), "north")), quick(manifests.Pinned(manifests.Deployment("split", 6), "*")), quick(manifests.Pinned(manifests.Deployment("going", 1), "north")))
	lost := framework.NewScenario(t, s.Environment)
	lost.Logical.Apply(quick(manifests.Pinned(manifests.Deployment("lost", 2), "north")))
	for _, name := range []string{"lost", "going"} {
		expect.RolledOut(s, name, *framework.ReadDeployment(s, name).Spec.Replicas)
	}
	expect.RolledOut(s, "split", 6)
	expect.RolledOut(lost, "lost", 2)

	cluster := s.Environment.Clusters["north"]
	s.Cleanup(func() { restore(s, cluster) })
	if err := cluster.Kill(stock.APIServer); err != nil {
		t.Fatal(err)
	}
	// What was being deleted as it went waits for it, and so does a removal without force, which says what to do.
	s.Logical.Kubectl("delete", "deployment", "going", "--wait=false")
	s.Logical.Kubectl("delete", "namespace", lost.Namespace, "--wait=false")
	expect.Refused(t, s.Logical.TryCLI("cluster", "remove", "north", "--timeout=3s"), "is not removed", "manifold cluster remove north --force")
	framework.Await(s.Logical, "going", "waits", func(d *appsv1.Deployment) bool { return d.DeletionTimestamp != nil })

	expect.Says(t, s.Logical.CLI("cluster", "remove", "north", "--force", "--timeout=60s"), "cluster/north removed")
	checkForgotten(s, "north")
	checkForgotten(lost, "north")
	framework.AwaitGone[*appsv1.Deployment](s.Logical, "going")
	framework.AwaitGone[*corev1.Namespace](lost.Logical, lost.Namespace)
	expect.Unplaced(s, "lost", "not joined")
	framework.Await(s.Logical, "split", "is placed on those that are left", expect.PlacedOn(s, "east", "west"))
	expect.RolledOut(s, "split", 6)
	s.Logical.Kubectl("delete", "deployment", "lost", "--timeout=60s")
	s.Logical.Kubectl("delete", "namespace", s.Namespace, "--timeout=60s")
}

// restore brings a cluster back that a test has killed.
func restore(s *framework.Scenario, cluster *stock.Cluster) {
	s.Helper()
	ctx, cancel := framework.AfterTest()
	defer cancel()
	if err := revive(ctx, cluster); err != nil {
		s.Errorf("bring cluster %q back: %v", cluster.Name(), err)
	}
}

// revive starts the API server of a cluster again, and after it those that would come back by themselves, but only look for it once in
// half a minute.
func revive(ctx context.Context, cluster *stock.Cluster) error {
	for _, component := range []stock.Component{stock.APIServer, stock.ControllerManager, stock.Scheduler, stock.Kwok} {
		if err := cluster.Restart(ctx, component); err != nil {
			return err
		}
	}
	return nil
}

func TestTwoLogicalClustersShareAPhysicalOne(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north")
	north := s.Side("north")
	other := framework.NewScenario(t, framework.StartOwn(t, framework.Options{}))
	kubeconfig := []string{"--cluster-kubeconfig", north.Kubeconfig}
	other.Logical.CLI(append([]string{"cluster", "join", "mine"}, kubeconfig...)...)
	if a, b := framework.IdentityOf(t, s.Environment), framework.IdentityOf(t, other.Environment); a == b {
		t.Fatalf("both logical clusters are %s", a)
	}
	// The same names in another namespace, and then in the same one.
	s.Logical.Apply(manifests.App)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=north", "--overwrite")
	other.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 3), "mine"))
	expect.RolledOut(s, "web", 2)
	expect.RolledOut(other, "web", 3)
	other.Logical.Kubectl("create", "namespace", s.Namespace)
	intruder := *other
	intruder.Namespace, intruder.Logical = s.Namespace, other.Logical.In(s.Namespace)
	before := below(s, north)

	intruder.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 5), "mine"))
	framework.AwaitList(intruder.Logical, "", "an event says whose the namespace is", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "belongs to another logical cluster")
		})
	})
	same := func(moment string) {
		t.Helper()
		if now := below(s, north); now != before {
			t.Errorf("%s, what is below was\n%s\nand is\n%s", moment, before, now)
		}
	}
	same("after a try to take its names")
	intruder.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	intruder.Logical.Kubectl("delete", "namespace", s.Namespace, "--timeout=60s")
	same("after the other's namespace was deleted")
	if err := other.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := other.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	expect.RolledOut(other, "web", 4)
	same("after the other was restarted")

	other.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	expect.Says(t, other.Logical.CLI(append([]string{"cluster", "remove", "mine", "--timeout=60s"}, kubeconfig...)...), "cluster/mine removed")
	same("after the cluster was removed from the other")
	membership.AwaitNothing(s, north, v1alpha1.LabelLogicalCluster+"="+framework.IdentityOf(t, other.Environment))
	if accounts := membership.Objects(t.Context(), t, north.API, membership.Managed); !strings.Contains(fmt.Sprint(accounts), "serviceaccounts manifold-system/manifold-syncer-"+framework.IdentityOf(t, s.Environment)[:8]) {
		t.Errorf("of what joining made there is only %v", accounts)
	}
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	expect.RolledOut(s, "web", 3)
}

// below writes down what the scenario's logical cluster owns in a cluster and which pods run there, as they are.
func below(s *framework.Scenario, side *framework.Side) string {
	s.Helper()
	var out strings.Builder
	// What the cluster's own controllers make of it, with our label copied, they may write again at any time.
	selector := membership.Owned(s)
	for _, kind := range projection.Kinds() {
		if others := kind.NotMadeThere; others != "" {
			selector += "," + others
		}
	}
	for _, f := range membership.Objects(s.Context(), s.T, side.API, selector) {
		fmt.Fprintln(&out, f, f.UID, f.Version)
	}
	fmt.Fprintln(&out, framework.PodUIDs(s, side, "web"))
	return out.String()
}
