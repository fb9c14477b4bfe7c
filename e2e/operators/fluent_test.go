package operators

import (
	"fmt"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// Fluent's operator renders the configuration of Fluentd from several custom resources into a Secret, and makes a StatefulSet that mounts it.
var fluent = operator{
	program: tools.Fluent,
	crds:    "config/crd/bases/*.fluent.io_*.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{
			"--watch-namespaces=" + s.Namespace, "--disable-component-controllers=fluent-bit",
			fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", s.FreePort()), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", s.FreePort()),
		}, nil
	},
	given: `
apiVersion: fluentd.fluent.io/v1alpha1
kind: FluentdConfig
metadata: {name: main, labels: {fluentd: main}}
spec: {outputSelector: {matchLabels: {output: main}}}
---
apiVersion: fluentd.fluent.io/v1alpha1
kind: Output
metadata: {name: main, labels: {output: main}}
spec: {outputs: [{stdout: {}}]}
`,
	resource: `
apiVersion: fluentd.fluent.io/v1alpha1
kind: Fluentd
metadata: {name: main}
spec:
  replicas: 2
  image: fluentd:1
  globalInputs: [{forward: {bind: 0.0.0.0, port: 24224}}]
  fluentdCfgSelector: {matchLabels: {fluentd: main}}
  buffer: {disableBufferVolume: true}
  resources: {requests: {cpu: 10m, memory: 16Mi}}
`,
	name:    "fluentd/main",
	well:    "jsonpath={.status.state}=active",
	selects: "app.kubernetes.io/name=main",
	pods:    2,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/replicas", "value": 4}]`, pods: 4},
		{patch: `[{"op": "replace", "path": "/spec/replicas", "value": 2}]`, pods: 2},
	},
	makes:   []string{"statefulsets.apps/main", "secrets/main-config", "services/main", "serviceaccounts/main"},
	below:   []string{"statefulsets.apps/main", "secrets/main-config", "services/main", "serviceaccounts/main"},
	divided: true,
}
