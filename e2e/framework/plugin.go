package framework

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// PluginProgram returns the path of a plugin of delivery, one that tools.BuildClients builds with the SDK of PipeCD's plugins.
func PluginProgram(t *testing.T, name string) string {
	t.Helper()
	root, err := tools.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := tools.BuildClient(t.Context(), root, os.Stdout, name)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// RoguePlugin builds the plugin that misbehaves as its configuration says, and returns its path.
func RoguePlugin(t *testing.T) string {
	t.Helper()
	root, err := tools.Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "rogue")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./e2e/plugins/rogue")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the rogue plugin: %v\n%s", err, out)
	}
	return program
}
