package network

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// mixedService has a port of nodes that was chosen, and one that each cluster allocates.
const mixedService = `apiVersion: v1
kind: Service
metadata: {name: db}
spec:
  type: NodePort
  selector: {app: db}
  ports: [{name: sql, port: 5432, nodePort: 31432}, {name: admin, port: 8080}]
`

// onNodes reports whether a Service is at the ports of nodes that it is to have, or at none.
func onNodes(want bool) func(*corev1.Service) bool {
	return func(s *corev1.Service) bool {
		if len(s.Spec.Ports) != 2 {
			return false
		}
		chosen, allocated := s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort
		if want {
			return s.Spec.Type == corev1.ServiceTypeNodePort && chosen == 31432 && allocated != 0
		}
		return s.Spec.Type == corev1.ServiceTypeClusterIP && chosen == 0 && allocated == 0
	}
}

func TestAServiceWithChosenAndAllocatedPortsIsReachedFromInsideAloneWhereItHasNoPods(t *testing.T) {
	s := framework.NewScenario(t, meshed.Get(t))
	s.Logical.Apply(mixedService, manifests.Pinned(manifests.Deployment("db", 2), "east"), manifests.Pinned(manifests.Deployment("api", 1), "east"),
		manifests.Pinned(manifests.Deployment("web", 1), "west"))
	expect.RolledOut(s, "db", 2)
	before := framework.Await(s.East, "db", "is on the nodes where its pods are", onNodes(true))
	framework.Await(s.West, "db", "is to be reached from inside", onNodes(false))

	s.Logical.Kubectl("annotate", "deployment", "db", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	framework.Await(s.West, "db", "is on the nodes where its pods come", onNodes(true))
	expect.RolledOut(s, "db", 2)
	after := framework.Await(s.East, "db", "is to be reached from inside alone when its pods have gone", onNodes(false))
	if before.UID != after.UID || before.Spec.ClusterIP != after.Spec.ClusterIP {
		t.Errorf("it was made anew: %s at %s, then %s at %s", before.UID, before.Spec.ClusterIP, after.UID, after.Spec.ClusterIP)
	}
	s.Logical.Kubectl("annotate", "deployment", "db", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.Await(s.East, "db", "is on the nodes again when they come back", onNodes(true))
}
