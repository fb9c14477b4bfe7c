package operators

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// leaderWorkerSet makes groups of pods: a StatefulSet of leaders, and one of workers for each of these. Its webhook labels the pods by their group,
// by which the StatefulSets of workers are made, and tells them their leader, so it makes nothing of use unless the pods of StatefulSets pass it.
var leaderWorkerSet = operator{
	program: tools.LeaderWorkerSet,
	crds:    "config/crd/bases/*.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{"--config=" + lwsConfig(s), "--leader-elect=false"}, nil
	},
	resource: `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: main}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 3
    restartPolicy: None
    workerTemplate:
      spec:
        containers: [{name: serve, image: "serve:1", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`,
	name:    "leaderworkerset/main",
	well:    "condition=Available",
	selects: "leaderworkerset.sigs.k8s.io/name=main,leaderworkerset.sigs.k8s.io/worker-index,leaderworkerset.sigs.k8s.io/group-key",
	pods:    6,
	steps: []step{
		{patch: `[{"op": "replace", "path": "/spec/replicas", "value": 3}]`, pods: 9},
		{patch: `[{"op": "replace", "path": "/spec/replicas", "value": 1}]`, pods: 3},
	},
	divided: true,
	makes:   []string{"statefulsets.apps/main", "statefulsets.apps/main-0", "statefulsets.apps/main-1", "services/main"},
	below:   []string{"statefulsets.apps/main", "statefulsets.apps/main-0"},
}

// lwsConfig registers the operator's webhooks as its manifests do, but for where they are and that they are for the namespace alone, and returns the
// file that has it serve them there.
func lwsConfig(s *framework.Scenario) string {
	s.Helper()
	dir, port := s.TempDir(), s.FreePort()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		s.Fatal(err)
	}
	config := fmt.Sprintf(`
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {host: 127.0.0.1, port: %[2]d, certDir: %[1]s}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "127.0.0.1:%[3]d"}
`, dir, port, s.FreePort())
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "config.yaml": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	for kind, verb := range map[string]string{"MutatingWebhookConfiguration": "mutate", "ValidatingWebhookConfiguration": "validate"} {
		s.Logical.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]s
metadata: {name: lws-%[2]s}
webhooks:
- name: leaderworkerset.kb.io
  clientConfig: {url: "https://127.0.0.1:%[3]d/%[4]s-leaderworkerset-x-k8s-io-v1-leaderworkerset", caBundle: %[5]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
  rules:
  - {apiGroups: [leaderworkerset.x-k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [leaderworkersets]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: pod.kb.io
  clientConfig: {url: "https://127.0.0.1:%[3]d/%[4]s--v1-pod", caBundle: %[5]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
  objectSelector: {matchExpressions: [{key: leaderworkerset.sigs.k8s.io/name, operator: Exists}]}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, kind, s.Namespace, port, verb, base64.StdEncoding.EncodeToString(certificate)))
		s.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", kind, "lws-"+s.Namespace) })
	}
	return filepath.Join(dir, "config.yaml")
}
