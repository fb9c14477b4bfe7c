package placement

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestAPinToOneClusterIsObeyed(t *testing.T) {
	s := suite.Scenario(t)
	for _, cluster := range []string{"east", "west"} {
		name := "web-" + cluster
		s.Logical.Apply(manifests.Pinned(manifests.Deployment(name, 3), cluster))
		want := placement.Decision{cluster: {Replicas: 3}}
		// The decision is there as soon as the object is.
		if got := framework.DecisionOf(s, framework.ReadDeployment(s, name)); !got.Equal(want) {
			t.Errorf("pinned to %s it is placed on %s", cluster, got)
		}
		expect.RolledOut(s, name, 3)
		expect.Shares(s, name, want)
	}
}

func TestAPinToTwoClustersDividesExactly(t *testing.T) {
	s := suite.Scenario(t)
	for _, replicas := range []int32{1, 2, 3, 5, 8, 13} {
		for pin, name := range map[string]string{"east,west": "names", " west , east ": "spaces", "*": "all"} {
			name := fmt.Sprintf("%s-%d", name, replicas)
			s.Logical.Apply(manifests.Pinned(manifests.Deployment(name, int(replicas)), pin))
			d := framework.ReadDeployment(s, name)
			got := framework.DecisionOf(s, d)
			if got.Total() != int64(replicas) {
				t.Errorf("pin %q: %d replicas are divided into %s", pin, replicas, got)
			}
			if len(got) != int(min(2, replicas)) {
				t.Errorf("pin %q: %d replicas are on %d clusters: %s", pin, replicas, len(got), got)
			}
		}
	}
	expect.RolledOut(s, "names-13", 13)
	expect.Shares(s, "names-13", framework.DecisionOf(s, framework.ReadDeployment(s, "names-13")))
}

func TestTheOwnPinWinsOverThatOfTheNamespace(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"=west")
	s.Logical.Apply(manifests.Deployment("follows", 2))
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("insists", 2), "east"))
	framework.Await(s.Logical, "follows", "is where its namespace is pinned", expect.PlacedOn(s, "west"))
	framework.Await(s.Logical, "insists", "is where it is pinned itself", expect.PlacedOn(s, "east"))

	// The namespace's pin moves what follows it, and nothing else.
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	framework.Await(s.Logical, "follows", "is divided as its namespace says", func(d *appsv1.Deployment) bool {
		return expect.Available(2)(d) && expect.PlacedOn(s, "west")(d) || expect.PlacedOn(s, "east", "west")(d)
	})
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.Await(s.Logical, "follows", "has moved with its namespace's pin", expect.PlacedOn(s, "east"))
	framework.Await(s.Logical, "insists", "has not moved", expect.PlacedOn(s, "east"))

	// Without a pin of its own, the other one follows too.
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"=west", "--overwrite")
	s.Logical.Kubectl("annotate", "deployment", "insists", v1alpha1.AnnotationClusters+"-")
	framework.Await(s.Logical, "insists", "follows its namespace", expect.PlacedOn(s, "west"))
	expect.RolledOut(s, "insists", 2)
	expect.Shares(s, "insists", placement.Decision{"west": {Replicas: 2}})
}

func TestRemovingThePinUnpins(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "west"))
	expect.RolledOut(s, "web", 2)
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "Pin:", "west, set on the Deployment")

	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"-")
	// What runs stays where it is: nobody asked for a move.
	framework.Await(s.Logical, "web", "stays", expect.PlacedOn(s, "west"))
	if text := s.Logical.CLI("explain", "deployment/web"); strings.Contains(text, "Pin:") {
		t.Errorf("it is still said to be pinned:\n%s", text)
	}
	// It is free to be pinned elsewhere, and to several.
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east")
	framework.Await(s.Logical, "web", "moves to where it is pinned now", expect.PlacedOn(s, "east"))
	expect.Shares(s, "web", placement.Decision{"east": {Replicas: 2}})
}

func TestADryRunShowsWhereItWouldGoAndStoresNothing(t *testing.T) {
	s := suite.Scenario(t)
	path := "jsonpath={.metadata.annotations['manifold\\.dev/placement']}"
	shown := s.Logical.KubectlInput(manifests.Pinned(manifests.Deployment("web", 3), "east"), "apply", "--dry-run=server", "-f", "-", "-o", path)
	if shown != `{"east":{"replicas":3}}` {
		t.Errorf("the dry run shows %q", shown)
	}
	expect.Refused(t, s.Logical.Try("get", "deployment", "web"), "NotFound")

	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 3), "east"))
	expect.RolledOut(s, "web", 3)
	before := framework.ReadDeployment(s, "web")
	shown = s.Logical.KubectlInput(manifests.Pinned(manifests.Deployment("web", 5), "west"), "apply", "--dry-run=server", "-f", "-", "-o", path)
	if shown != `{"west":{"replicas":5}}` {
		t.Errorf("the dry run of a change shows %q", shown)
	}
	if after := framework.ReadDeployment(s, "web"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a dry run changed the object: %v", after)
	}
}

func TestScalingDividesAgainInTheSameRequest(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"))
	expect.RolledOut(s, "web", 4)
	deployments := s.Logical.Kube.AppsV1().Deployments(s.Namespace)

	for _, test := range []struct {
		way      string
		replicas int32
		scale    func(replicas int32)
	}{
		{"kubectl scale", 9, func(replicas int32) {
			s.Logical.Kubectl("scale", "deployment/web", fmt.Sprintf("--replicas=%d", replicas))
		}},
		{"the scale subresource", 7, func(replicas int32) {
			err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				scale, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
				if err != nil {
					return err
				}
				scale.Spec.Replicas = replicas
				_, err = deployments.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"a patch of the scale", 3, func(replicas int32) {
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
			if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "scale"); err != nil {
				t.Fatal(err)
			}
		}},
		{"a patch", 12, func(replicas int32) {
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
			d, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := framework.DecisionOf(s, d); got.Total() != int64(replicas) {
				t.Errorf("the response to the patch says %s, want %d replicas", got, replicas)
			}
		}},
		{"kubectl apply", 6, func(replicas int32) {
			s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", int(replicas)), "east,west"))
		}},
	} {
		before := framework.DecisionOf(s, framework.ReadDeployment(s, "web"))
		test.scale(test.replicas)
		after := framework.DecisionOf(s, framework.ReadDeployment(s, "web"))
		if after.Total() != int64(test.replicas) {
			t.Errorf("%s to %d: the next read says %s", test.way, test.replicas, after)
		}
		checkSticky(t, test.way, before, after)
	}
	expect.RolledOut(s, "web", 6)
	expect.Shares(s, "web", framework.DecisionOf(s, framework.ReadDeployment(s, "web")))

	s.Logical.Kubectl("scale", "deployment/web", "--replicas=0")
	framework.AwaitList(s.Logical, "app=web", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=2")
	expect.RolledOut(s, "web", 2)
}

// checkSticky checks that no cluster shrank while the whole grew, and none grew while it shrank.
func checkSticky(t *testing.T, way string, before, after placement.Decision) {
	t.Helper()
	for _, cluster := range []string{"east", "west"} {
		change := after[cluster].Replicas - before[cluster].Replicas
		if whole := after.Total() - before.Total(); whole > 0 && change < 0 || whole < 0 && change > 0 {
			t.Errorf("%s: %s changed by %d while all changed by %d: from %s to %s", way, cluster, change, whole, before, after)
		}
	}
}

// TestAFreshDivisionNeverRunsTwice is about the moment when a new Deployment of 8 ran 8 on each cluster before it was divided.
func TestAFreshDivisionNeverRunsTwice(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	most := map[string]int32{}
	stop := framework.Watch([]*framework.Side{s.East, s.West}, func(now map[string][]*appsv1.Deployment) {
		sum := map[string]int32{}
		for _, deployments := range now {
			for _, d := range deployments {
				sum[d.Name] += ptr.Deref(d.Spec.Replicas, 1)
			}
		}
		for name, replicas := range sum {
			most[name] = max(most[name], replicas)
		}
	})
	for i := range 5 {
		s.Logical.Apply(manifests.Pinned(manifests.Deployment(fmt.Sprintf("split-%d", i), 8), "east,west"), manifests.Deployment(fmt.Sprintf("whole-%d", i), 8))
	}
	for i := range 5 {
		for _, name := range []string{fmt.Sprintf("split-%d", i), fmt.Sprintf("whole-%d", i)} {
			expect.RolledOut(s, name, 8)
			expect.Shares(s, name, framework.DecisionOf(s, framework.ReadDeployment(s, name)))
		}
	}
	stop()
	for name, replicas := range most {
		if replicas != 8 {
			t.Errorf("the clusters together once had %d replicas of %s, want 8 at most", replicas, name)
		}
	}
	if len(most) != 10 {
		t.Errorf("%d Deployments were seen, want 10", len(most))
	}
}
