package simulate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// run runs the command as a user does who has no logical cluster.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runWith(t, "", args...)
}

func runWith(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	cmd := NewCommand(cmdutil.NewFactory(genericclioptions.NewConfigFlags(true)), genericiooptions.IOStreams{
		In: strings.NewReader(in), Out: &out, ErrOut: &out,
	})
	cmd.SetArgs(append([]string{}, args...)) // without any, cobra takes those of the test
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestSimulatePrintsDecisions(t *testing.T) {
	for golden, args := range map[string][]string{
		"default-policy.txt": {"-f", "testdata/app.yaml", "--clusters", "testdata/clusters.yaml"},
		"policy.txt":         {"-f", "testdata/app.yaml", "-f", "testdata/policy.yaml", "--clusters", "testdata/clusters.yaml"},
		"without-east.txt":   {"-f", "testdata/app.yaml", "-f", "testdata/policy.yaml", "--clusters", "testdata/clusters.yaml", "--without", "east"},
		"preemption.txt":     {"-f", "testdata/urgent.yaml", "--clusters", "testdata/state.yaml"},
		"policy-moves.txt":   {"-f", "testdata/move.yaml", "--clusters", "testdata/state.yaml"},
		"lost-state.txt":     {"--clusters", "testdata/state.yaml", "--without", "east"},
		"nothing-moves.txt":  {"--clusters", "testdata/state.yaml"},
		"all-lost.txt":       {"--clusters", "testdata/state.yaml", "--without", "east,west"},
		"kustomization.txt":  {"-k", "testdata/kustomization", "--clusters", "testdata/clusters.yaml"},
		"policy.yaml.txt":    {"-f", "testdata/app.yaml", "-f", "testdata/policy.yaml", "--clusters", "testdata/clusters.yaml", "-o", "yaml"},
	} {
		t.Run(golden, func(t *testing.T) {
			got, err := run(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", golden)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// deployment is a manifest of one replica, in which something is replaced.
func deployment(t *testing.T, old, new string) string {
	t.Helper()
	const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, annotations: {}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]
`
	if !strings.Contains(manifest, old) {
		t.Fatalf("the manifest does not have %q", old)
	}
	return strings.Replace(manifest, old, new, 1)
}

func TestSimulateRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing to try":                    {want: "manifests are required"},
		"a format that there is not":        {args: []string{"-f", "testdata/app.yaml", "-o", "table"}, want: `invalid argument "table" for "-o, --output" flag: it must be json or yaml`},
		"manifests without workloads":       {args: []string{"-f", "testdata/policy.yaml", "--clusters", "testdata/clusters.yaml"}, want: "there are no workloads, neither in the manifests nor beside the clusters"},
		"a policy that would be refused":    {args: []string{"-f", "testdata/wrong.yaml", "--clusters", "testdata/clusters.yaml"}, want: `testdata/wrong.yaml: PlacementPolicy wrong: spec.division.type: Unsupported value: "Halve"`},
		"a policy with a field in vain":     {args: []string{"-f", "testdata/unknown.yaml", "--clusters", "testdata/clusters.yaml"}, want: `unknown field "spec.replicas"`},
		"a lost cluster that there was not": {args: []string{"-f", "testdata/app.yaml", "--clusters", "testdata/clusters.yaml", "--without", "south"}, want: "--without south: there is no such cluster"},
		"a file that there is not":          {args: []string{"-f", "testdata/none.yaml", "--clusters", "testdata/clusters.yaml"}, want: `read the manifests: the path "testdata/none.yaml" does not exist`},
		"standard input twice":              {args: []string{"-f", "-", "--clusters", "-"}, want: "-f and --clusters cannot both read standard input"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestSimulateNamesWhatIsWrongInAManifest(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"a field that there is not": {"resources: ", "resource: ", `unknown field "spec.template.spec.containers[0].resource"`},
		"a text for a number":       {"replicas: 1", "replicas: two", `spec.replicas: Invalid value: "two": must be of type int32`},
		"no quantity":               {`cpu: "1"`, "cpu: lots", `spec.template.spec.containers[0].resources.requests[cpu]: Invalid value: "lots": quantities must match`},
		"a request below nothing":   {`cpu: "1"`, `cpu: "-1"`, `spec.template.spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		"replicas below nothing":    {"replicas: 1", "replicas: -1", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		"a pin":                     {"annotations: {}", `annotations: {manifold.dev/clusters: "east,,west"}`, `metadata.annotations[manifold.dev/clusters]: Invalid value: "east,,west": entry 2: is blank`},
		"a decision":                {"annotations: {}", "annotations: {manifold.dev/placement: east}", `metadata.annotations[manifold.dev/placement]: Invalid value: "east"`},
		"a version":                 {"apps/v1", "extensions/v1beta1", `apiVersion: Unsupported value: "extensions/v1beta1": supported values: "apps/v1"`},
		"no name":                   {"name: web, namespace", "namespace", "metadata.name: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := deployment(t, "", "") + "---\n" + deployment(t, test.old, test.new)
			_, err := runWith(t, manifest, "-f", "-", "--clusters", "testdata/clusters.yaml")
			want := "read the manifests: standard input: Deployment shop/web: "
			if name == "no name" {
				want = "read the manifests: standard input: Deployment shop/: "
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, want+test.want)
			}
		})
	}
}

// What a cluster cannot schedule moves after the time that the server tolerates, which it publishes.
func TestSimulateDecidesByTheSettingsOfTheServer(t *testing.T) {
	const state = `apiVersion: v1
kind: ConfigMap
metadata: {name: manifold, namespace: kube-public}
data: {cluster-toleration: 5m, unschedulable-toleration: TOLERATION}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  annotations: {manifold.dev/cluster: east}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no node, lastTransitionTime: SINCE}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]
spec: {selector: {matchLabels: {app: web}}}
`
	since := time.Now().Add(-10 * time.Minute).UTC().Format(time.RFC3339)
	placed := deployment(t, "annotations: {}", `annotations: {manifold.dev/placement: '{"east":{"replicas":1}}', manifold.dev/status: '{"east":{"replicas":1}}'}`)
	for toleration, want := range map[string]string{"2m0s": "Placed:     1 on west", "1h0m0s": "Placed:     1 on east", "long": "ConfigMap kube-public/manifold: "} {
		in := strings.NewReplacer("TOLERATION", toleration, "SINCE", since).Replace(state) + "---\n" + placed
		got, err := runWith(t, in, "-f", "testdata/kustomization/app.yaml", "--clusters", "-", "--clusters", "testdata/state.yaml")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("with a toleration of %s: %s\nwant %q", toleration, got, want)
		}
	}
}
