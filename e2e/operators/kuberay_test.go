package operators

import (
	"fmt"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// KubeRay makes pods by itself, one for the head and one for each worker, with Services, and chooses which of them to delete.
var kubeRay = operator{
	program: tools.KubeRay,
	crds:    "config/crd/bases/*.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{
			"--watch-namespace=" + s.Namespace, "--leader-election-namespace=" + s.Namespace,
			fmt.Sprintf("--metrics-addr=127.0.0.1:%d", s.FreePort()), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", s.FreePort()),
		}, nil
	},
	resource: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: main}
spec:
  rayVersion: 2.46.0
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers:
        - {name: ray-head, image: "rayproject/ray:2.46.0", resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 100m, memory: 64Mi}}}
  workerGroupSpecs:
  - groupName: small
    replicas: 2
    minReplicas: 0
    maxReplicas: 5
    rayStartParams: {}
    template:
      spec:
        containers:
        - {name: ray-worker, image: "rayproject/ray:2.46.0", resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 100m, memory: 64Mi}}}
`,
	name:    "raycluster/main",
	well:    "jsonpath={.status.state}=ready",
	selects: "ray.io/cluster=main",
	pods:    3,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 4}]`, pods: 5},
		{patch: `[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 1}]`, pods: 2},
		{patch: `[{"op": "add", "path": "/spec/suspend", "value": true}]`, pods: 0},
		{patch: `[{"op": "replace", "path": "/spec/suspend", "value": false}]`, pods: 2},
	},
	makes: []string{"services/main-head-svc"},
	below: []string{"services/main-head-svc"},
}
