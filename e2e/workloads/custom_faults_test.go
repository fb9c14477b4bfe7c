package workloads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// TestACustomResourceOutlivesFaults takes copies through a restart, a move, a silent cluster, a definition that vanishes below, and the
// removal of a cluster.
func TestACustomResourceOutlivesFaults(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-kind", "*.custom.e2e.example.com")
	north := s.Side("north")
	k := customKind{"gears", "Gear"}
	for _, side := range []*framework.Side{s.Logical, s.East, s.West, north} {
		k.define(s, side)
	}
	k.allow(s, "east")
	k.allow(s, "west")
	for _, name := range []string{"going", "moving", "steady"} {
		k.make(s.Logical, k.manifest(name, "west,north", "{size: 1}"))
	}
	uids := map[string]string{}
	for _, name := range []string{"going", "moving", "steady"} {
		for _, side := range []*framework.Side{s.West, north} {
			uids[name+side.Name] = string(k.await(side.Within(2*time.Minute), name, "is there", exists).GetUID())
		}
		k.say(s, s.West, name, `{"phase":"Up"}`)
		k.say(s, north, name, `{"phase":"Up"}`)
		k.await(s.Logical, name, "shows its status", func(o *unstructured.Unstructured) bool { return nested(o, "status", "phase") == "Up" })
	}
	same := func(side *framework.Side, name string) {
		t.Helper()
		if got := k.await(side, name, "is there", exists).GetUID(); string(got) != uids[name+side.Name] {
			t.Errorf("%s in %s was made anew", name, side.Name)
		}
	}

	before := membership.Versions(s)
	if err := s.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.make(s.Logical, k.manifest("later", "north", "{size: 1}"))
	k.await(north, "later", "is there after the restart", exists)
	for what, version := range before {
		if now := membership.Versions(s)[what]; now != version {
			t.Errorf("the restart changed %s from version %s to %s", what, version, now)
		}
	}

	s.Logical.Kubectl("annotate", "gear", "moving", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	k.await(s.East, "moving", "has moved here", exists)
	k.awaitGone(s.West, "moving")
	k.awaitGone(north, "moving")
	k.await(s.Logical, "moving", "has forgotten where it was", func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()[v1alpha1.AnnotationStatus] == `{"east":{"generation":1}}` && nested(o, "status") == ""
	})

	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "west", "is silent", membership.Readiness(metav1.ConditionUnknown))
	s.Logical.Kubectl("delete", "gear", "going", "--wait=false")
	k.awaitGone(north, "going")
	k.await(s.Logical, "steady", "tells of the silence, with what was last known", func(o *unstructured.Unstructured) bool {
		return nested(o, "status", "phase") == "Up" && o.GetAnnotations()[v1alpha1.AnnotationStatus] ==
			`{"north":{"generation":1,"state":"Up","status":{"phase":"Up"}},"west":{"generation":1,"stale":true,"state":"Up","status":{"phase":"Up"}}}`
	})
	k.await(s.Logical, "going", "waits for the silent cluster", func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil && hasFinalizer(o) })
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	k.awaitGone(s.Logical, "going")
	k.awaitGone(s.West, "going")
	same(s.West, "steady")

	s.West.Kubectl("delete", "crd", "gears.custom.e2e.example.com", "--timeout=60s")
	k.await(s.Logical, "steady", "says that the kind is gone there", func(o *unstructured.Unstructured) bool {
		return strings.Contains(o.GetAnnotations()[v1alpha1.AnnotationStatus], "does not serve gears.custom.e2e.example.com")
	})
	k.define(s, s.West)
	k.await(s.West.Within(2*time.Minute), "steady", "is back", exists)
	same(north, "steady")

	expect.Refused(t, s.Logical.TryCLI("cluster", "remove", "north", "--timeout=3s"), fmt.Sprintf("Gear %s/later", s.Namespace))
	s.Logical.Kubectl("annotate", "gear", "later", v1alpha1.AnnotationClusters+"=*", "--overwrite")
	expect.Says(t, s.Logical.CLI("cluster", "remove", "north", "--cluster-kubeconfig", north.Kubeconfig, "--timeout=60s"), "cluster/north removed")
	k.awaitGone(north, "steady")
	k.awaitGone(north, "later")
	k.await(s.East, "later", "is where it may be", exists)
	k.await(s.Logical, "steady", "is in the other cluster alone", func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()[v1alpha1.AnnotationPlacement] == `{"west":{"replicas":1}}`
	})
	if left := membership.Objects(t.Context(), t, north.API, membership.Owned(s), membership.Managed); len(left) > 0 {
		t.Errorf("these are left in the cluster: %v", left)
	}
}
