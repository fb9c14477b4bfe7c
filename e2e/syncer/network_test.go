package syncer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// networkPolicies are about the pods of a Deployment, all pods, and pods that nothing runs.
const networkPolicies = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: web
spec:
  podSelector:
    matchExpressions:
    - {key: app, operator: In, values: [web, www]}
  ingress:
  - ports:
    - port: 8080
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: all
spec:
  podSelector: {}
  policyTypes: [Ingress]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: other
spec:
  podSelector:
    matchLabels:
      app: other
`

// points are the addresses that an Ingress shows.
func points(in *networkingv1.Ingress) string {
	var out []string
	for _, p := range in.Status.LoadBalancer.Ingress {
		out = append(out, p.IP+p.Hostname)
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

func TestAnIngressFollowsItsServices(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), manifests.Pinned(manifests.Deployment("api", 1), "east"), manifests.Site)
	expect.RolledOut(s, "web", 2)
	for side, point := range map[*framework.Side]string{s.East: "192.0.2.1", s.West: "192.0.2.2"} {
		in := framework.Await(side, "site", "is there", framework.Exists[*networkingv1.Ingress])
		if got := in.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name; got != "web" {
			t.Errorf("%s: it leads to %q", side.Name, got)
		}
		framework.Await(side, "certificate", "came with the Ingress", framework.Exists[*corev1.Secret])
		framework.Await(side, "users", "came with the Ingress", framework.Exists[*corev1.Secret])
		side.Kubectl("patch", "ingress", "site", "--subresource=status", "--type=merge",
			"-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"`+point+`"}]}}}`)
	}
	framework.Await(s.Logical, "site", "has the addresses of both clusters", func(in *networkingv1.Ingress) bool {
		return points(in) == "[192.0.2.1 192.0.2.2]"
	})
	expect.Says(t, s.Logical.Kubectl("get", "ingress", "site"), "192.0.2.1", "192.0.2.2")

	s.Logical.Kubectl("patch", "ingress", "site", "--type=json", "-p", `[{"op":"replace","path":"/spec/rules/0/host","value":"www.example.com"}]`)
	framework.Await(s.East, "site", "has the new host", func(in *networkingv1.Ingress) bool { return in.Spec.Rules[0].Host == "www.example.com" })

	s.Logical.Kubectl("annotate", "ingress", "site", v1alpha1.AnnotationDrainSeconds+"=1")
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.AwaitGone[*networkingv1.Ingress](s.West, "site")
	framework.AwaitGone[*corev1.Secret](s.West, "certificate")
	framework.Await(s.Logical, "site", "has lost the address of the cluster that it left", func(in *networkingv1.Ingress) bool {
		return points(in) == "[192.0.2.1]"
	})
	s.Logical.Kubectl("delete", "ingress", "site")
	framework.AwaitGone[*networkingv1.Ingress](s.East, "site")
	framework.AwaitGone[*corev1.Secret](s.East, "certificate")
}

func TestEventsOfAnIngressAreShown(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"), manifests.Site)
	below := framework.Await(s.East, "site", "is there", framework.Exists[*networkingv1.Ingress])
	s.East.Apply(fmt.Sprintf(`apiVersion: v1
kind: Event
metadata:
  name: site.1
involvedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, namespace: %s, name: site, uid: %s}
reason: Sync
message: scheduled for sync
type: Normal
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
source: {component: ingress-controller}
`, s.Namespace, below.UID))
	framework.AwaitList(s.Logical, "", "the Ingress above has the event", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool { return e.InvolvedObject.Kind == "Ingress" && e.Reason == "Sync" })
	})
	expect.Says(t, s.Logical.Kubectl("describe", "ingress", "site"), "scheduled for sync")
}

func TestNetworkPoliciesGuardThePodsThatTheySelect(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"), manifests.Pinned(manifests.Deployment("api", 1), "west"), networkPolicies)
	expect.RolledOut(s, "web", 1)
	expect.RolledOut(s, "api", 1)
	for side, want := range map[*framework.Side]string{s.East: "[all web]", s.West: "[all]"} {
		framework.AwaitList(side, "", "there are "+want, func(found []*networkingv1.NetworkPolicy) bool {
			var got []string
			for _, policy := range found {
				got = append(got, policy.Name)
			}
			slices.Sort(got)
			return fmt.Sprint(got) == want
		})
	}
	if out := s.East.Kubectl("describe", "networkpolicy", "web"); !strings.Contains(out, "To Port: 8080/TCP") {
		t.Errorf("it does not arrive as it was written:\n%s", out)
	}
	s.Logical.Kubectl("delete", "networkpolicy", "all")
	framework.AwaitGone[*networkingv1.NetworkPolicy](s.East, "all")
	framework.AwaitGone[*networkingv1.NetworkPolicy](s.West, "all")
}
