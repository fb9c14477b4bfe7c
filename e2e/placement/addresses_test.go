package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// balanced is a Service of type LoadBalancer for what is called web.
func balanced(drain string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    %s: %q
spec:
  type: LoadBalancer
  selector: {app: web}
  ports:
  - port: 80
    targetPort: 8080
`, v1alpha1.AnnotationDrainSeconds, drain)
}

// gives has a cluster give the Service web an address, as a controller of load balancers would.
func gives(side *framework.Side, ip string) {
	framework.Await(side, "web", "is there", framework.Exists[*corev1.Service])
	side.Kubectl("patch", "service", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"`+ip+`"}]}}}`)
}

// published waits until the Service web has these addresses and no others.
func published(s *framework.Scenario, want ...string) {
	s.Helper()
	framework.Await(s.Logical, "web", fmt.Sprintf("has the addresses %q", want), func(svc *corev1.Service) bool {
		var got []string
		for _, point := range svc.Status.LoadBalancer.Ingress {
			got = append(got, point.IP)
		}
		return strings.Join(got, " ") == strings.Join(want, " ")
	})
}

// TestAnAddressLeavesItsStatusBeforeTheReplicasBehindItGo moves a workload that users reach from outside.
func TestAnAddressLeavesItsStatusBeforeTheReplicasBehindItGo(t *testing.T) {
	framework.Long(t)
	const drain = 8 * time.Second
	s := suite.Scenario(t)
	expect.Refused(t, s.Logical.TryInput(balanced("soon"), "apply", "-f", "-"), "metadata.annotations[manifold.dev/drain-seconds]", "whole number of seconds")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "west"), balanced("8"))
	expect.RolledOut(s, "web", 2)
	gives(s.West, "192.0.2.2")
	published(s, "192.0.2.2")

	// East serves and has no address: users would reach nobody.
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.Await(s.Logical, "web", "says that west waits for an address of east", func(d *appsv1.Deployment) bool {
		return strings.Contains(d.Annotations[v1alpha1.AnnotationStatus], "until another cluster has an address of Service web to take the place of 192.0.2.2")
	})
	published(s, "192.0.2.2")

	gives(s.East, "192.0.2.1")
	published(s, "192.0.2.1")
	left := time.Now()
	if pods := framework.PodUIDs(s, s.West, "web"); len(pods) == 0 {
		t.Error("the last pods have gone before the address was drained")
	}
	framework.Await(s.Logical, "web", "says for how long west waits", func(d *appsv1.Deployment) bool {
		return strings.Contains(d.Annotations[v1alpha1.AnnotationStatus], "address 192.0.2.2 of Service web left the status at")
	})
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "address 192.0.2.2 of Service web left the status at")
	framework.AwaitGone[*appsv1.Deployment](s.West, "web")
	if took := time.Since(left); took < drain-time.Second {
		t.Errorf("the replicas stayed for %s, want %s", took, drain)
	}
	framework.AwaitGone[*corev1.Service](s.West, "web")
	published(s, "192.0.2.1")
	framework.AwaitList(s.Logical, "", "an event says that the address has left", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, "web", "AddressWithdrawn")) == 1
	})
	framework.Await(s.Logical, "web", "remembers nothing of it", func(svc *corev1.Service) bool { return svc.Annotations[v1alpha1.AnnotationStatus] == "" })
}

// TestAnAddressReturnsWithTheShare has users of a cluster led there again when what they reach is to stay after all.
func TestAnAddressReturnsWithTheShare(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), balanced("3600"))
	expect.RolledOut(s, "web", 2)
	gives(s.East, "192.0.2.1")
	gives(s.West, "192.0.2.2")
	published(s, "192.0.2.1", "192.0.2.2")

	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	published(s, "192.0.2.1")
	before := framework.PodUIDs(s, s.West, "web")
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	published(s, "192.0.2.2")
	after := framework.PodUIDs(s, s.West, "web")
	for _, uid := range before {
		if !strings.Contains(fmt.Sprint(after), string(uid)) {
			t.Errorf("pod %s has gone although it was to stay in the end", uid)
		}
	}

	// Who does not want to wait says so, also in the middle of it.
	framework.Await(s.East, "web", "is kept for an hour", framework.Exists[*appsv1.Deployment])
	s.Logical.Kubectl("annotate", "service", "web", v1alpha1.AnnotationDrainSeconds+"=0", "--overwrite")
	framework.AwaitGone[*appsv1.Deployment](s.East, "web")
	expect.RolledOut(s, "web", 2)
	published(s, "192.0.2.2")
}
