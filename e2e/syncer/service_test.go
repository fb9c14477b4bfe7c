package syncer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func nodePort(svc *corev1.Service) int32 { return svc.Spec.Ports[0].NodePort }

// nodePortService is a Service on the nodes of its clusters, at the port that is named if it is not 0.
func nodePortService(port int32) string {
	manifest := `apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  type: NodePort
  selector: {app: web}
  ports:
  - port: 80
    targetPort: 8080
`
	if port != 0 {
		manifest += fmt.Sprintf("    nodePort: %d\n", port)
	}
	return manifest
}

func TestPortsOfNodesAreEachClustersOwnUnlessTheyAreChosen(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	// What east has allocated is free neither above nor below only by chance, so it is taken there on purpose.
	expect.NamespaceIn(s, s.East)
	taken := takenInEastAlone(s)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"), nodePortService(0))
	above := framework.Await(s.Logical, "web", "has a port", func(svc *corev1.Service) bool { return nodePort(svc) != 0 })
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "web", "has a port there", func(svc *corev1.Service) bool { return nodePort(svc) != 0 })
	}
	expect.RolledOut(s, "web", 2)
	if now := framework.Await(s.Logical, "web", "is still there", framework.Exists[*corev1.Service]); nodePort(now) != nodePort(above) {
		t.Errorf("the port above was %d and is %d", nodePort(above), nodePort(now))
	}

	s.Logical.Apply(nodePortService(nodePort(taken)))
	framework.Await(s.West, "web", "has the port that was chosen", func(svc *corev1.Service) bool { return nodePort(svc) == nodePort(taken) })
	framework.AwaitList(s.Logical, "", "an event says that east has it no more", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Kind == "Service" && e.Reason == "ProjectionFailed" && e.Type == corev1.EventTypeWarning
		})
	})
	expect.Says(t, s.Logical.Kubectl("describe", "service", "web"), `cluster "east"`, "provided port is already allocated")
	s.East.Kubectl("delete", "service", "taken")
	framework.Await(s.East, "web", "has the port once it is free", func(svc *corev1.Service) bool { return nodePort(svc) == nodePort(taken) })
	expect.RolledOut(s, "web", 2)
}

// takenInEastAlone makes a Service in east whose port is free in west.
func takenInEastAlone(s *framework.Scenario) *corev1.Service {
	s.Helper()
	var taken *corev1.Service
	s.East.Poll("a port of east is free in west", func() error {
		s.East.Kubectl("create", "service", "nodeport", "taken", "--tcp=80")
		taken = framework.Await(s.East, "taken", "has a port", func(svc *corev1.Service) bool { return nodePort(svc) != 0 })
		probe := s.West.TryInput(nodePortService(nodePort(taken)), "create", "--dry-run=server", "-n", "default", "-f", "-")
		if probe.Code == 0 {
			return nil
		}
		s.East.Kubectl("delete", "service", "taken")
		return errors.New(probe.String())
	})
	return taken
}

const servicesOfAllSorts = `apiVersion: v1
kind: Service
metadata:
  name: sticky
spec:
  selector: {app: web}
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}
  internalTrafficPolicy: Local
  trafficDistribution: PreferSameZone
  externalIPs: [192.0.2.7]
  ports:
  - {name: http, port: 80, targetPort: 8080, appProtocol: http}
  - {name: dns, port: 53, protocol: UDP}
---
apiVersion: v1
kind: Service
metadata:
  name: headless
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: Service
metadata:
  name: elsewhere
spec:
  type: ExternalName
  externalName: db.example.com
`

func TestServicesOfAllSortsArriveAsTheyAre(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"), servicesOfAllSorts)
	for _, name := range []string{"sticky", "headless", "elsewhere"} {
		below := framework.Await(s.East, name, "is there", framework.Exists[*corev1.Service])
		above, err := s.Logical.Kube.CoreV1().Services(s.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want, got := above.Spec.DeepCopy(), below.Spec.DeepCopy()
		for _, spec := range []*corev1.ServiceSpec{want, got} {
			if spec.ClusterIP != corev1.ClusterIPNone {
				spec.ClusterIP, spec.ClusterIPs = "", nil
			}
		}
		if want.String() != got.String() {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	s.Logical.Kubectl("patch", "service", "sticky", "--type=merge", "-p",
		`{"spec":{"type":"ExternalName","externalName":"web.example.com","externalIPs":null,"clusterIP":null,"clusterIPs":null,"internalTrafficPolicy":null,"trafficDistribution":null}}`)
	framework.Await(s.East, "sticky", "is but a name now", func(svc *corev1.Service) bool {
		return svc.Spec.Type == corev1.ServiceTypeExternalName && svc.Spec.ExternalName == "web.example.com"
	})
	s.Logical.Kubectl("patch", "service", "sticky", "--type=merge", "-p", `{"spec":{"type":"LoadBalancer","externalName":null}}`)
	framework.Await(s.East, "sticky", "has an address and ports of nodes", func(svc *corev1.Service) bool {
		return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.ClusterIP != "" && nodePort(svc) != 0
	})
}

const writtenByHand = `apiVersion: v1
kind: Service
metadata:
  name: db
spec:
  ports: [{port: 5432}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-1
  labels: {kubernetes.io/service-name: db}
addressType: IPv4
ports: [{port: 5432}]
endpoints: [{addresses: [192.0.2.20]}]
---
apiVersion: v1
kind: Service
metadata:
  name: old
spec:
  ports: [{port: 5432}]
---
apiVersion: v1
kind: Endpoints
metadata:
  name: old
subsets: [{addresses: [{ip: 192.0.2.30}], ports: [{port: 5432}]}]
`

// addresses are those of the slices of one Service.
func addresses(found []*discoveryv1.EndpointSlice) string {
	var out []string
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			out = append(out, endpoint.Addresses...)
		}
	}
	return fmt.Sprint(out)
}

func TestEndpointsThatAreWrittenByHandGoAlongWithTheirService(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"), writtenByHand, nodePortService(0))
	expect.RolledOut(s, "web", 1)
	for _, side := range []*framework.Side{s.Logical, s.East} {
		for service, want := range map[string]string{"db": "[192.0.2.20]", "old": "[192.0.2.30]"} {
			framework.AwaitList(side, "kubernetes.io/service-name="+service, "its endpoint is there", func(found []*discoveryv1.EndpointSlice) bool {
				return addresses(found) == want
			})
		}
	}
	s.Logical.Kubectl("patch", "endpointslice", "db-1", "--type=json", "-p", `[{"op":"replace","path":"/endpoints/0/addresses/0","value":"192.0.2.21"}]`)
	framework.AwaitList(s.East, "kubernetes.io/service-name=db", "it has moved", func(found []*discoveryv1.EndpointSlice) bool {
		return addresses(found) == "[192.0.2.21]"
	})
	// What the cluster makes of pods is its own.
	framework.AwaitList(s.East, "kubernetes.io/service-name=web", "the pod serves there by one slice", func(found []*discoveryv1.EndpointSlice) bool {
		return len(found) == 1 && len(found[0].Endpoints) == 1 && found[0].Labels[discoveryv1.LabelManagedBy] == "endpointslice-controller.k8s.io"
	})
	s.Logical.Kubectl("delete", "endpointslice", "db-1")
	framework.AwaitList(s.East, "kubernetes.io/service-name=db", "it is gone", func(found []*discoveryv1.EndpointSlice) bool { return len(found) == 0 })
}
