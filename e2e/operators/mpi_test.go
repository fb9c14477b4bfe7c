package operators

import (
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// The MPI operator makes workers as pods of its own and a Job that launches the work, with a Service, a key for SSH and a list of the workers
// that all of them mount. It always listens on port 8080, which has to be free.
var mpi = operator{
	program: tools.MPI,
	crds:    "manifests/base/*_mpijobs.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{"--namespace=" + s.Namespace, "--lock-namespace=" + s.Namespace}, nil
	},
	resource: `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: main}
spec:
  slotsPerWorker: 1
  runPolicy: {suspend: false}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        metadata: {annotations: {kwok.x-k8s.io/outcome: stay}}
        spec:
          containers: [{name: mpi-launcher, image: "work:1", command: [mpirun, work], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
    Worker:
      replicas: 2
      template:
        metadata: {annotations: {kwok.x-k8s.io/outcome: stay}}
        spec:
          containers: [{name: mpi-worker, image: "work:1", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`,
	name:    "mpijob/main",
	well:    "condition=Running",
	selects: "training.kubeflow.org/job-name=main",
	pods:    3,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/mpiReplicaSpecs/Worker/replicas", "value": 4}]`, pods: 5},
		{patch: `[{"op": "replace", "path": "/spec/mpiReplicaSpecs/Worker/replicas", "value": 1}]`, pods: 2},
		{patch: `[{"op": "replace", "path": "/spec/runPolicy/suspend", "value": true}]`, pods: 0},
		{patch: `[{"op": "replace", "path": "/spec/runPolicy/suspend", "value": false}]`, pods: 2},
	},
	makes: []string{"jobs.batch/main-launcher", "configmaps/main-config", "secrets/main-ssh", "services/main"},
	below: []string{"configmaps/main-config", "secrets/main-ssh", "services/main"},
}
