package placement

import (
	"encoding/json"
	"fmt"
	"slices"
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

// ofGateways is as much of a kind of the Gateway API as the test needs.
func ofGateways(plural, kind string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.gateway.networking.k8s.io
  annotations:
    api-approved.kubernetes.io: "unapproved, for tests alone"
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {plural: %[1]s, singular: %[2]s, kind: %[3]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
`, plural, strings.ToLower(kind), kind)
}

// entrance is a Gateway in a cluster, with a route that leads from it to the Service web.
func entrance(cluster string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: front
  annotations: {manifold.dev/clusters: %[1]q, manifold.dev/drain-seconds: "20"}
spec:
  gatewayClassName: any
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  annotations: {manifold.dev/clusters: %[1]q}
spec:
  parentRefs: [{name: front}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`, cluster)
}

// opens has a cluster give the Gateway front an address, as its controller would.
func opens(side *framework.Side, ip string) {
	side.Poll("the Gateway is there", func() error { return framework.Failure(side.Try("get", "gateway", "front")) })
	side.Kubectl("patch", "gateway", "front", "--subresource=status", "--type=merge", "-p", `{"status":{"addresses":[{"type":"IPAddress","value":"`+ip+`"}]}}`)
}

// entered waits until the Gateway front has these addresses.
func entered(s *framework.Scenario, want string) {
	s.Helper()
	s.Logical.Poll("the Gateway has the addresses "+want, func() error {
		if got := s.Logical.Kubectl("get", "gateway", "front", "-o", "jsonpath={.status.addresses[*].value}"); got != want {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// withdrawn returns when the addresses of a cluster left the status of the Gateway front, in whole seconds.
func withdrawn(s *framework.Scenario, cluster string) time.Time {
	s.Helper()
	said := s.Logical.Kubectl("get", "gateway", "front", "-o", `jsonpath={.metadata.annotations.manifold\.dev/status}`)
	var of map[string]struct{ Withdrawn time.Time }
	if err := json.Unmarshal([]byte(said), &of); err != nil || of[cluster].Withdrawn.IsZero() {
		s.Fatalf("the Gateway says %q, want when the address of %s left (%v)", said, cluster, err)
	}
	return of[cluster].Withdrawn
}

// TestTheAddressOfAGatewayLeavesBeforeWhatItLeadsTo moves a workload with the Gateway and the route that lead users to it, and then has it, and these, run
// in a second cluster as well, whose address comes after what it leads to.
func TestTheAddressOfAGatewayLeavesBeforeWhatItLeadsTo(t *testing.T) {
	const drain = 20 * time.Second // within it the test sees what holds only then
	s := suite.Scenario(t)
	for plural, kind := range map[string]string{"gateways": "Gateway", "httproutes": "HTTPRoute"} {
		for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
			side.Apply(ofGateways(plural, kind))
			s.Cleanup(func() {
				s.Environment.CleanupIn(s.T, side.API, "delete", "crd", plural+".gateway.networking.k8s.io", "--wait=false", "--ignore-not-found")
			})
			side.Established(ofGateways(plural, kind))
		}
	}
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "gateways.gateway.networking.k8s.io", "--allow-kind", "httproutes.gateway.networking.k8s.io")
	}
	s.Logical.Poll("the new kinds can be created", func() error { return framework.Failure(s.Logical.TryInput(entrance("west"), "apply", "-f", "-")) })
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "west"))
	expect.RolledOut(s, "web", 2)
	opens(s.West, "192.0.2.2")
	entered(s, "192.0.2.2")

	s.Logical.Apply(entrance("east"), manifests.Pinned(manifests.Deployment("web", 2), "east"))
	framework.Await(s.Logical, "web", "says that west waits for another address", func(d *appsv1.Deployment) bool {
		return strings.Contains(d.Annotations[v1alpha1.AnnotationStatus], "of Gateway front to take the place of 192.0.2.2")
	})
	entered(s, "192.0.2.2")
	opens(s.East, "192.0.2.1")
	entered(s, "192.0.2.1")
	left := withdrawn(s, "west")
	if pods := framework.PodUIDs(s, s.West, "web"); len(pods) == 0 {
		t.Error("the last pods have gone before the address was drained")
	}
	for _, object := range []string{"gateway/front", "httproute/web"} {
		s.West.Kubectl("get", object)
	}
	framework.Await(s.Logical, "web", "says for how long west waits", func(d *appsv1.Deployment) bool {
		return strings.Contains(d.Annotations[v1alpha1.AnnotationStatus], "address 192.0.2.2 of Gateway front left the status at")
	})
	framework.AwaitGone[*appsv1.Deployment](s.West, "web")
	if took := time.Since(left); took < drain {
		t.Errorf("the replicas stayed for %s, want %s", took, drain)
	}
	s.West.Poll("the Gateway and the route have followed", func() error {
		if got := s.West.Kubectl("get", "gateways,httproutes", "-o", "name"); got != "" {
			return fmt.Errorf("there are %q", got)
		}
		return nil
	})
	entered(s, "192.0.2.1")
	expect.RolledOut(s, "web", 2)
	framework.AwaitList(s.Logical, "", "an event says that the address has left", func(events []*corev1.Event) bool {
		return len(framework.EventsAbout(events, "front", "AddressWithdrawn")) == 1
	})

	// A second cluster has the Gateway, the route and an address, before anything that these lead to runs there.
	s.Logical.Apply(entrance("east,west"))
	opens(s.West, "192.0.2.2")
	s.Logical.Poll("it is known that west has an address", func() error {
		return framework.Contains(s.Logical.Kubectl("get", "gateway", "front", "-o", "jsonpath={.metadata.annotations}"), "192.0.2.2")
	})
	entered(s, "192.0.2.1")
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	entered(s, "192.0.2.1 192.0.2.2")
	expect.RolledOut(s, "web", 2)
	framework.AwaitList(s.West, "app=web", "something is ready behind it", func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, expect.Ready)
	})
}
