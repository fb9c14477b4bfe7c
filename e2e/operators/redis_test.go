package operators

import (
	"fmt"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// Redis' operator makes a StatefulSet with claims that it owns, a Deployment of sentinels that watch it, and a PodDisruptionBudget for each. It
// goes on trying to reach the pods, which only pretend to run, and tells nothing in the status of its custom resource.
var redis = operator{
	program: tools.Redis,
	crds:    "manifests/databases.spotahome.com_redisfailovers.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{"--development", "--kubeconfig=" + s.Logical.Kubeconfig, fmt.Sprintf("--listen-address=127.0.0.1:%d", s.FreePort())},
			[]string{"POD_NAMESPACE=" + s.Namespace}
	},
	resource: `
apiVersion: databases.spotahome.com/v1
kind: RedisFailover
metadata: {name: main}
spec:
  sentinel:
    replicas: 2
    resources: {requests: {cpu: 10m, memory: 16Mi}}
  redis:
    replicas: 2
    resources: {requests: {cpu: 10m, memory: 16Mi}}
    storage:
      persistentVolumeClaim:
        metadata: {name: data}
        spec: {accessModes: [ReadWriteOnce], storageClassName: NAMESPACE, resources: {requests: {storage: 1Gi}}}
`,
	name:    "redisfailover/main",
	selects: "redisfailovers.databases.spotahome.com/name=main",
	pods:    4,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/redis/replicas", "value": 4}]`, pods: 6},
		{patch: `[{"op": "replace", "path": "/spec/sentinel/replicas", "value": 3}]`, pods: 7},
		{patch: `[{"op": "replace", "path": "/spec/redis/replicas", "value": 2}]`, pods: 5},
	},
	keeps: []string{"configmaps/redis-failover-lease"}, // by which its processes elect one
	makes: []string{
		"statefulsets.apps/rfr-main", "deployments.apps/rfs-main", "services/rfs-main", "configmaps/rfr-main", "configmaps/rfs-main",
		"configmaps/rfr-s-main", "configmaps/rfr-readiness-main", "poddisruptionbudgets.policy/rfr-main", "poddisruptionbudgets.policy/rfs-main",
		"persistentvolumeclaims/data-rfr-main-0", "persistentvolumeclaims/data-rfr-main-1",
	},
	below: []string{
		"statefulsets.apps/rfr-main", "deployments.apps/rfs-main", "services/rfs-main", "configmaps/rfr-main", "configmaps/rfs-main",
		"poddisruptionbudgets.policy/rfr-main", "poddisruptionbudgets.policy/rfs-main", "persistentvolumeclaims/data-rfr-main-0",
	},
	divided: true,
}
