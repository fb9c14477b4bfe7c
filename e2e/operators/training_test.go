package operators

import (
	"fmt"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// Kubeflow's training operator makes each replica of a job as a pod of its own with a Service that selects this one by labels, and tells every
// pod where the others are.
var training = operator{
	program: tools.Training,
	crds:    "manifests/base/crds/*_tfjobs.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{
			"--enable-scheme=tfjob", "--namespace=" + s.Namespace, fmt.Sprintf("--monitoring-port=%d", s.FreePort()),
			fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", s.FreePort()), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", s.FreePort()),
		}, nil
	},
	resource: `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: main}
spec:
  enableDynamicWorker: true
  tfReplicaSpecs:
    PS:
      replicas: 1
      restartPolicy: Never
      template: &pod
        metadata: {annotations: {kwok.x-k8s.io/outcome: stay}}
        spec:
          containers: [{name: tensorflow, image: "work:1", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
    Worker: {replicas: 2, restartPolicy: Never, template: *pod}
`,
	name:    "tfjob/main",
	well:    "condition=Running",
	selects: "training.kubeflow.org/job-name=main",
	pods:    3,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/tfReplicaSpecs/Worker/replicas", "value": 4}]`, pods: 5},
		{patch: `[{"op": "replace", "path": "/spec/tfReplicaSpecs/Worker/replicas", "value": 1}]`, pods: 2},
	},
	makes: []string{"services/main-ps-0", "services/main-worker-0", "services/main-worker-1"},
	below: []string{"services/main-ps-0", "services/main-worker-0", "services/main-worker-1"},
}
