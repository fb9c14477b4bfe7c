package operators

import (
	"fmt"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// RabbitMQ's operator makes a StatefulSet with claims that it owns, a ServiceAccount with a Role, Secrets and ConfigMaps. It enables plugins by
// exec in the pods and goes on trying when that fails, as it does here where they only pretend to run. It never makes a cluster smaller, but to
// nothing and back. When it looks once more at a custom resource that has just been deleted, it makes it anew, empty, as its function to take off
// its finalizer makes what its cache does not have.
var rabbitMQ = operator{
	program: tools.RabbitMQ,
	crds:    "config/crd/bases/*.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", s.FreePort())},
			[]string{"OPERATOR_NAMESPACE=" + s.Namespace, "OPERATOR_SCOPE_NAMESPACE=" + s.Namespace}
	},
	resource: `
apiVersion: rabbitmq.com/v1beta1
kind: RabbitmqCluster
metadata: {name: main}
spec:
  replicas: 2
  image: rabbitmq:4.1.1-management
  terminationGracePeriodSeconds: 1
  resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 10m, memory: 16Mi}}
  persistence: {storage: 1Gi, storageClassName: NAMESPACE}
`,
	name:    "rabbitmqcluster/main",
	well:    "condition=AllReplicasReady",
	selects: "app.kubernetes.io/name=main",
	pods:    2,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/replicas", "value": 3}]`, pods: 3},
		{patch: `[{"op": "replace", "path": "/spec/replicas", "value": 0}]`, pods: 0},
		{patch: `[{"op": "replace", "path": "/spec/replicas", "value": 3}]`, pods: 3},
	},
	makes: []string{
		"statefulsets.apps/main-server", "services/main", "services/main-nodes", "configmaps/main-plugins-conf", "configmaps/main-server-conf",
		"secrets/main-default-user", "secrets/main-erlang-cookie", "serviceaccounts/main-server",
		"roles.rbac.authorization.k8s.io/main-peer-discovery", "rolebindings.rbac.authorization.k8s.io/main-server",
		"persistentvolumeclaims/persistence-main-server-0",
	},
	below: []string{
		"statefulsets.apps/main-server", "services/main-nodes", "configmaps/main-server-conf", "secrets/main-erlang-cookie",
		"serviceaccounts/main-server",
	},
	// The custom resource that is made anew asks for one replica, and goes while the StatefulSet that was made of it is at work. A cluster's
	// controller may make a claim when its StatefulSet has just been deleted, which is collected all the same.
	returns: true,
	divided: true,
}
