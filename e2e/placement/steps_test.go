package placement

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// TestMovesGoInSteps moves Deployments in every way there is between three clusters, one of them with each of the ways that it allows, and
// looks at every moment at how many pods are ready and how many replicas clusters are told to run.
func TestMovesGoInSteps(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north")
	sides := []*framework.Side{s.Side("north"), s.East, s.West}
	s.Logical.Apply(stepPolicy("one-by-one", "{maxSurge: 1}", "east"), stepPolicy("in-place", "{maxSurge: 0, maxUnavailable: 2}", "east"))
	apps := map[string]*steps{}
	for name, want := range map[string]steps{"one-by-one": {fewest: 4, most: 5}, "in-place": {fewest: 2, most: 4}} {
		s.Logical.Apply(manifests.Edited(manifests.Deployment(name, 4), func(d *appsv1.Deployment) { d.Labels["policy"] = name }))
		expect.RolledOut(s, name, 4)
		apps[name] = watchSteps(s, sides, name, 4, want)
	}
	all := func(what, cluster string) {
		t.Helper()
		for name := range apps {
			framework.Await(s.Logical, name, "is decided to be in "+cluster+" after "+what, expect.PlacedOn(s, cluster))
			expect.RolledOut(s, name, 4)
			for _, side := range sides {
				if side.Name != cluster {
					framework.AwaitGone[*appsv1.Deployment](side, name)
				}
			}
		}
	}
	each := func(args ...string) {
		t.Helper()
		for name := range apps {
			s.Logical.Kubectl(append([]string{args[0], "deployment", name}, args[1:]...)...)
		}
	}
	begun := func(side *framework.Side) {
		t.Helper()
		for name := range apps {
			framework.AwaitList(side, "app="+name, "the first new pods are ready", func(pods []*corev1.Pod) bool { return len(pods) > 0 && expect.Ready(pods[0]) })
		}
	}
	all("being made", "east")

	each("annotate", v1alpha1.AnnotationClusters+"=north")
	begun(s.Side("north"))
	each("annotate", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	all("a move that was turned round", "east")

	each("annotate", v1alpha1.AnnotationClusters+"=north", "--overwrite")
	begun(s.Side("north"))
	if err := s.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	all("a crash in the middle of a move", "north")

	s.Logical.Apply(stepPolicy("one-by-one", "{maxSurge: 1}", "west"), stepPolicy("in-place", "{maxSurge: 0, maxUnavailable: 2}", "west"))
	each("annotate", v1alpha1.AnnotationClusters+"-")
	all("the policy has its way", "west")

	s.Logical.Apply(labelPolicy("one-by-one", "{maxSurge: 1}"), labelPolicy("in-place", "{maxSurge: 0, maxUnavailable: 2}"))
	s.Logical.Kubectl("label", "cluster", "north", "moves=here")
	all("another label of a cluster", "north")
	s.Logical.Kubectl("label", "cluster", "west", "moves=here")
	s.Cleanup(func() { s.Environment.Cleanup(s.T, "label", "cluster", "west", "moves-") })
	expect.Says(t, s.Logical.CLI("cluster", "drain", "north"), "cluster/north drained")
	all("a drain", "west")

	for name, app := range apps {
		got := app.stop()
		if got.fewest < app.fewest {
			t.Errorf("once only %d pods of %s were ready in all clusters, want %d at every moment: %s", got.fewest, name, app.fewest, got.then)
		}
		if got.told < app.fewest {
			t.Errorf("once the status of %s told of %d ready replicas, want %d at every moment", name, got.told, app.fewest)
		}
		if got.most > app.most {
			t.Errorf("once clusters were told to run %d replicas of %s, want %d at most", got.most, name, app.most)
		}
	}
}

// stepPolicy bounds the moves of the Deployment of its name and keeps it in a cluster.
func stepPolicy(name, move, cluster string) string {
	return movePolicy(name, move, "{names: ["+cluster+"]}")
}

// labelPolicy is stepPolicy with the clusters that a label selects.
func labelPolicy(name, move string) string {
	return movePolicy(name, move, "{labelSelector: {matchLabels: {moves: here}}}")
}

func movePolicy(name, move, clusters string) string {
	return fmt.Sprintf(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: %[1]s
spec:
  workloads: {labelSelector: {matchLabels: {policy: %[1]s}}}
  clusters: %[3]s
  move: %[2]s
`, name, move, clusters)
}

// steps are bounds: the fewest ready pods, the most replicas that clusters are told to run, and the fewest ready ones of the status above.
type steps struct {
	fewest, most int
	told         int
	// then is what was seen when the fewest pods were ready.
	then string
	stop func() steps
}

// watchSteps looks at a Deployment in the clusters from now on, until it is stopped, which returns what was seen. One watch may be ahead of
// the others, so what looks wrong is asked for again, in two rounds as by ReadyNow: of shares, the smaller one of both may have been there.
func watchSteps(s *framework.Scenario, sides []*framework.Side, name string, replicas int, want steps) *steps {
	s.Helper()
	seen := steps{fewest: replicas, most: replicas, told: replicas}
	toldNow := func() (n int) {
		shares := map[string]int{}
		for round := range 2 {
			for _, side := range sides {
				share := 0
				if d, err := side.Kube.AppsV1().Deployments(s.Namespace).Get(s.Context(), name, metav1.GetOptions{}); err == nil {
					share = told(d)
				}
				if round == 0 || share < shares[side.Name] {
					shares[side.Name] = share
				}
			}
		}
		for _, share := range shares {
			n += share
		}
		return n
	}
	stopPods := framework.Watch(sides, func(now map[string][]*corev1.Pod) {
		n := 0
		for _, pods := range now {
			for _, pod := range pods {
				n += one(pod.Labels["app"] == name && expect.Ready(pod))
			}
		}
		if n < seen.fewest && n < want.fewest {
			if list, answered := expect.ReadyNow(s, sides, name); answered && len(list) < seen.fewest {
				seen.fewest, seen.then = len(list), fmt.Sprint(list)
			}
		}
	})
	stopShares := framework.Watch(sides, func(now map[string][]*appsv1.Deployment) {
		n := 0
		for _, shares := range now {
			for _, d := range shares {
				if d.Name == name {
					n += told(d)
				}
			}
		}
		if n > seen.most && n > want.most {
			seen.most = max(seen.most, toldNow())
		}
	})
	// The status above never says less than there is.
	stopStatus := framework.Watch([]*framework.Side{s.Logical}, func(now map[string][]*appsv1.Deployment) {
		for _, d := range now[s.Logical.Name] {
			if d.Name == name {
				seen.told = min(seen.told, int(d.Status.ReadyReplicas))
			}
		}
	})
	want.stop = func() steps {
		stopPods()
		stopStatus()
		stopShares()
		return seen
	}
	return &want
}

// told is how many replicas a cluster is to run.
func told(d *appsv1.Deployment) int {
	if d.DeletionTimestamp != nil {
		return 0
	}
	return int(ptr.Deref(d.Spec.Replicas, 1))
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
