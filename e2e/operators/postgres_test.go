package operators

import (
	"strings"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// Zalando's operator makes a StatefulSet with claims, Services and PodDisruptionBudgets that select the labels by which the program in the pods
// says which of them leads, Secrets, and a ServiceAccount with a RoleBinding. It owns
// nothing by reference and deletes all itself, with the propagation policy Orphan, so what controllers of the cluster own stays.
var postgres = operator{
	program: tools.Postgres,
	crds:    "manifests/[op]*.crd.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{"-outofcluster", "-kubeconfig=" + s.Logical.Kubeconfig, "-nodatabaseaccess", "-noteamsapi"},
			[]string{"OPERATOR_NAMESPACE=" + s.Namespace, "CONFIG_MAP_NAME=" + s.Namespace + "/postgres-operator", "CRD_READY_WAIT_INTERVAL=1s"}
	},
	given: `
apiVersion: v1
kind: ConfigMap
metadata: {name: postgres-operator}
data:
  api_port: "FREEPORT"
  watched_namespace: NAMESPACE
  kubernetes_use_configmaps: "true"
  enable_crd_registration: "false"
  enable_database_access: "false"
  enable_teams_api: "false"
  enable_team_id_clustername_prefix: "false"
  resource_check_interval: 1s
  patroni_api_check_timeout: 1s
`,
	resource: `
apiVersion: acid.zalan.do/v1
kind: postgresql
metadata: {name: main}
spec:
  teamId: acid
  numberOfInstances: 2
  postgresql: {version: "17"}
  volume: {size: 1Gi, storageClass: NAMESPACE}
  resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 250m, memory: 250Mi}}
`,
	name:    "postgresql/main",
	well:    "jsonpath={.status.PostgresClusterStatus}=Running",
	selects: "cluster-name=main",
	pods:    2,
	play:    lead,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/numberOfInstances", "value": 4}]`, pods: 4},
		{patch: `[{"op": "replace", "path": "/spec/numberOfInstances", "value": 1}]`, pods: 1},
		{patch: `[{"op": "replace", "path": "/spec/numberOfInstances", "value": 3}]`, pods: 3},
	},
	keeps: []string{
		"serviceaccounts/postgres-pod", "rolebindings.rbac.authorization.k8s.io/postgres-pod",
		"endpointslices.discovery.k8s.io/main-*", "controllerrevisions.apps/main-*",
	},
	makes: []string{
		"statefulsets.apps/main", "services/main", "services/main-repl", "poddisruptionbudgets.policy/postgres-main-pdb",
		"secrets/postgres.main.credentials.postgresql.acid.zalan.do", "secrets/standby.main.credentials.postgresql.acid.zalan.do",
		"serviceaccounts/postgres-pod", "persistentvolumeclaims/pgdata-main-0", "persistentvolumeclaims/pgdata-main-1",
	},
	below: []string{
		"statefulsets.apps/main", "services/main", "services/main-repl", "poddisruptionbudgets.policy/postgres-main-pdb",
		"secrets/postgres.main.credentials.postgresql.acid.zalan.do", "serviceaccounts/postgres-pod", "persistentvolumeclaims/pgdata-main-0",
	},
	divided: true,
}

// lead labels the pods as the program in them would: the first one leads.
func lead(s *framework.Scenario) {
	s.Helper()
	for _, pod := range strings.Fields(s.Logical.Kubectl("get", "pods", "-l", "cluster-name=main", "-o", "name")) {
		role := "replica"
		if strings.HasSuffix(pod, "-0") {
			role = "master"
		}
		s.Logical.Kubectl("label", pod, "spilo-role="+role, "--overwrite")
	}
}
