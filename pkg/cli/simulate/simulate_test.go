package simulate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// run runs the command as a user does who has no logical cluster.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	cmd := NewCommand(cmdutil.NewFactory(genericclioptions.NewConfigFlags(true)), genericiooptions.IOStreams{
		In: strings.NewReader(""), Out: &out, ErrOut: &out,
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

func TestSimulateRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no manifests":                      {want: "manifests are required"},
		"a format that there is not":        {args: []string{"-f", "testdata/app.yaml", "-o", "table"}, want: `invalid argument "table" for "-o, --output" flag: it must be json or yaml`},
		"manifests without workloads":       {args: []string{"-f", "testdata/policy.yaml", "--clusters", "testdata/clusters.yaml"}, want: "the manifests hold no workloads"},
		"a policy that would be refused":    {args: []string{"-f", "testdata/wrong.yaml", "--clusters", "testdata/clusters.yaml"}, want: `PlacementPolicy wrong: spec.division.type: Unsupported value: "Halve"`},
		"a policy with a field in vain":     {args: []string{"-f", "testdata/unknown.yaml", "--clusters", "testdata/clusters.yaml"}, want: `unknown field "spec.replicas"`},
		"a lost cluster that there was not": {args: []string{"-f", "testdata/app.yaml", "--clusters", "testdata/clusters.yaml", "--without", "south"}, want: "--without south: there is no such cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
