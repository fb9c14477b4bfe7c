package operators

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// JobSet makes Jobs and a Service by which their pods find each other. Its size is set once; it can be suspended and resumed.
var jobSet = operator{
	program: tools.JobSet,
	crds:    "config/components/crd/bases/*.yaml",
	start: func(s *framework.Scenario) (args, env []string) {
		return []string{"--config=" + jobSetConfig(s), "--leader-elect=false"}, nil
	},
	resource: `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: main}
spec:
  network: {enableDNSHostnames: true, publishNotReadyAddresses: true}
  successPolicy: {operator: All}
  replicatedJobs:
  - name: workers
    groupName: default
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        completionMode: Indexed
        backoffLimit: 0
        template:
          metadata: {annotations: {kwok.x-k8s.io/outcome: stay}}
          spec:
            restartPolicy: OnFailure
            containers: [{name: work, image: "work:1", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`,
	name:    "jobset/main",
	well:    "jsonpath={.status.replicatedJobsStatus[0].ready}=2",
	selects: "jobset.sigs.k8s.io/jobset-name=main",
	pods:    4,
	steps: []step{
		{patch: `[{"op": "add", "path": "/spec/suspend", "value": true}]`, pods: 0},
		{patch: `[{"op": "replace", "path": "/spec/suspend", "value": false}]`, pods: 4},
	},
	makes: []string{"jobs.batch/main-workers-0", "jobs.batch/main-workers-1", "services/main"},
	below: []string{"services/main"},
}

// jobSetConfig returns a file that has the operator leave its webhooks unregistered, which only set defaults that the manifest has and place
// pods of Jobs that want a cluster's zone for themselves. They are served all the same and want a certificate.
func jobSetConfig(s *framework.Scenario) string {
	s.Helper()
	dir := s.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		s.Fatal(err)
	}
	config := fmt.Sprintf(`
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {host: 127.0.0.1, port: %[2]d, certDir: %[1]s}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "127.0.0.1:%[3]d"}
`, dir, s.FreePort(), s.FreePort())
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "config.yaml": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.yaml")
}
