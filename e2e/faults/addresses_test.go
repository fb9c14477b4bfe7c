package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// balanced is a Service of type LoadBalancer for what is called web.
const balanced = `apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    manifold.dev/drain-seconds: "25"
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

// bothGive has both clusters give the Service web an address, as controllers of load balancers would.
func bothGive(s *framework.Scenario) {
	s.Helper()
	for side, ip := range map[*framework.Side]string{s.East: "192.0.2.1", s.West: "192.0.2.2"} {
		framework.Await(side, "web", "is there", framework.Exists[*corev1.Service])
		side.Kubectl("patch", "service", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"`+ip+`"}]}}}`)
	}
	framework.Await(s.Logical, "web", "has both addresses", addresses("192.0.2.1", "192.0.2.2"))
}

// addresses reports whether a Service has these addresses and no others.
func addresses(want ...string) func(*corev1.Service) bool {
	return func(svc *corev1.Service) bool {
		var got []string
		for _, point := range svc.Status.LoadBalancer.Ingress {
			got = append(got, point.IP)
		}
		return slices.Equal(got, want)
	}
}

// TestTheAddressOfALostClusterLeavesWithItsWorkloads loses a cluster: users may reach its address for as long as its replicas count, and no longer.
func TestTheAddressOfALostClusterLeavesWithItsWorkloads(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	s.Logical.Apply(impatient, manifests.Edited(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), losable), balanced)
	expect.RolledOut(s, "web", 2)
	bothGive(s)
	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "west", "is silent", membership.Readiness(metav1.ConditionUnknown))
	framework.Await(s.Logical, "web", "is placed elsewhere", expect.PlacedOn(s, "east"))
	framework.Await(s.Logical, "web", "has the address of east alone", addresses("192.0.2.1"))
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone[*appsv1.Deployment](s.West, "web")
	framework.Await(s.Logical, "web", "has the address of east alone still", addresses("192.0.2.1"))
}

// TestADrainOfAnAddressGoesOnAfterARestart kills the process while an address is drained: whoever comes after it waits as long, and no longer.
func TestADrainOfAnAddressGoesOnAfterARestart(t *testing.T) {
	framework.Long(t)
	const drain = 25 * time.Second
	s := suite.Fragile(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), balanced)
	expect.RolledOut(s, "web", 2)
	bothGive(s)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	withdrawn := framework.Await(s.Logical, "web", "has lost the address of west", func(svc *corev1.Service) bool {
		return len(svc.Status.LoadBalancer.Ingress) == 1
	})
	left := time.Now()
	if !strings.Contains(withdrawn.Annotations[v1alpha1.AnnotationStatus], `"withdrawn"`) {
		t.Errorf("recorded is %q", withdrawn.Annotations[v1alpha1.AnnotationStatus])
	}

	manifold := s.Environment.Manifold
	if err := manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := framework.Await(s.Logical, "web", "is served again", framework.Exists[*corev1.Service])
	if again.Annotations[v1alpha1.AnnotationStatus] != withdrawn.Annotations[v1alpha1.AnnotationStatus] {
		t.Errorf("recorded is %q after the restart, and was %q", again.Annotations[v1alpha1.AnnotationStatus], withdrawn.Annotations[v1alpha1.AnnotationStatus])
	}
	framework.AwaitGone[*appsv1.Deployment](s.West, "web")
	if took := time.Since(left); took < drain-time.Second {
		t.Errorf("the replicas stayed for %s, want %s", took, drain)
	}
	expect.RolledOut(s, "web", 2)
	points := framework.Await(s.Logical, "web", "is still there", framework.Exists[*corev1.Service]).Status.LoadBalancer.Ingress
	if len(points) != 1 || points[0].IP != "192.0.2.1" {
		t.Errorf("it has %v, want the address of east", points)
	}
}
