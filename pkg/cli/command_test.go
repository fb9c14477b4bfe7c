package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// own calls visit with every command that is Manifold's: kubectl's tree and what cobra adds are others'.
func own(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		if name := sub.Name(); name != kubectlName && name != "completion" && name != "help" {
			own(sub, visit)
		}
	}
}

// run runs a command line and returns what it printed.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root := NewCommand(streams, args)
	root.SetOut(out)
	root.SetErr(out)
	root.SilenceErrors = true
	root.SetArgs(args[1:])
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestHelp(t *testing.T) {
	var text strings.Builder
	own(NewCommand(genericiooptions.NewTestIOStreamsDiscard(), []string{"manifold"}), func(cmd *cobra.Command) {
		if cmd.Name() == "options" || cmd.Name() == "start" {
			return // These print the flags of kubectl and of the stock API server.
		}
		line := append(strings.Fields(cmd.CommandPath()), "--help")
		help, err := run(t, line...)
		if err != nil {
			t.Errorf("%s: %v", cmd.CommandPath(), err)
		}
		fmt.Fprintf(&text, "$ %s\n%s\n\n", strings.Join(line, " "), strings.TrimSpace(help))
	})
	golden := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("help has changed; go test ./pkg/cli -update rewrites %s (-want +got):\n%s", golden, diff)
	}
}

func TestStartShowsFlagsBySection(t *testing.T) {
	help, err := run(t, "manifold", "start", "--help")
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, part := range []string{
		"\nExamples:\n", "\nUsage:\n  manifold start ", "\nManifold flags:\n", "--data-dir string", "\nGeneric flags:\n", "\nEtcd flags:\n",
	} {
		at := strings.Index(help, part)
		if at < last || at < 0 {
			t.Errorf("help has %q at %d, want it after what comes before, at %d", part, at, last)
		}
		last = at
	}
}

func TestExamplesAreCommandLines(t *testing.T) {
	root := NewCommand(genericiooptions.NewTestIOStreamsDiscard(), []string{"manifold"})
	own(root, func(cmd *cobra.Command) {
		if cmd.HasParent() && cmd.Name() != "options" && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "manifold" {
				continue
			}
			found, args, err := root.Find(words[1:])
			if err != nil || !found.Runnable() || found == root {
				t.Errorf("%s: example %q is no command: %v", cmd.CommandPath(), strings.TrimSpace(line), err)
				continue
			}
			if err := found.ParseFlags(args); err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), strings.TrimSpace(line), err)
			}
		}
	})
}

func TestUsageSaysHowTheBinaryWasCalled(t *testing.T) {
	for name, test := range map[string]struct {
		binary, want string
	}{
		"by its name":                {binary: "/usr/local/bin/manifold", want: "manifold cluster cordon"},
		"as a plugin of kubectl":     {binary: "/usr/local/bin/kubectl-manifold", want: "kubectl manifold cluster cordon"},
		"as a plugin on Windows":     {binary: "kubectl-manifold.exe", want: "kubectl manifold cluster cordon"},
		"by a name that nobody made": {binary: "./m", want: "manifold cluster cordon"},
	} {
		t.Run(name, func(t *testing.T) {
			help, err := run(t, test.binary, "cluster", "cordon", "--help")
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{"\n  " + test.want + " east\n", "\n  " + test.want + " NAME..."} {
				if !strings.Contains(help, line) {
					t.Errorf("help lacks %q:\n%s", line, help)
				}
			}
		})
	}
}

func TestKubectlIsWhole(t *testing.T) {
	root := NewCommand(genericiooptions.NewTestIOStreamsDiscard(), []string{"manifold"})
	for _, words := range []string{
		"get", "apply", "rollout status", "create deployment", "port-forward", "config view", "plugin list", "api-resources",
	} {
		found, rest, err := root.Find(append([]string{kubectlName}, strings.Fields(words)...))
		if err != nil || len(rest) > 0 || found.CommandPath() != "manifold kubectl "+words {
			t.Errorf("kubectl %s: found %s, left %v, %v", words, found.CommandPath(), rest, err)
		}
	}
	out, err := run(t, "manifold", "kubectl", "version", "--client")
	if err != nil || strings.Contains(out, "Server") {
		t.Errorf("kubectl version --client printed %q, %v", out, err)
	}
}

func TestBadCommandLines(t *testing.T) {
	for name, test := range map[string]struct {
		args, want string
	}{
		"an unknown command":          {args: "clustre", want: `unknown command "clustre"`},
		"an unknown flag":             {args: "cluster list --colour", want: "unknown flag: --colour\nSee 'manifold cluster list --help' for usage."},
		"a join without a name":       {args: "cluster join --cluster-kubeconfig file", want: "exactly one NAME is required, got 0"},
		"a join of two":               {args: "cluster join east west --cluster-kubeconfig file", want: "exactly one NAME is required, got 2"},
		"a join that leads nowhere":   {args: "cluster join east", want: "--cluster-kubeconfig is required"},
		"a label that is none":        {args: "cluster join east --cluster-kubeconfig file --label region", want: "region must be formatted as key=value"},
		"a removal without a name":    {args: "cluster remove", want: "exactly one NAME is required, got 0"},
		"a cordon without a name":     {args: "cluster cordon", want: "at least one NAME is required"},
		"nothing to explain":          {args: "explain", want: "one object is required"},
		"a tree without a root":       {args: "tree", want: "one object is required"},
		"a tree in a wrong format":    {args: "tree deployment/web -o wide", want: `"-o, --output" flag: it must be json or yaml`},
		"a format that there is not":  {args: "version --client -o wide", want: `"-o, --output" flag: it must be json or yaml`},
		"arguments that nobody reads": {args: "version east", want: `unknown command "east"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, append([]string{"manifold", "--server", "https://127.0.0.1:1"}, strings.Fields(test.args)...)...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.args, err, test.want)
			}
		})
	}
}
