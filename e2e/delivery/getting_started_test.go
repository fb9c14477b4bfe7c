package delivery

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// newReader returns somebody who has what the page asks for: a logical cluster with two clusters, the programs, and an empty repository.
func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{Scenario: suite.Scenario(t), dir: t.TempDir()}
	root, err := tools.Root()
	if err != nil {
		t.Fatal(err)
	}
	// The page chooses another namespace in it.
	kubeconfig, err := os.ReadFile(r.Logical.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "admin.kubeconfig")
	if err := os.WriteFile(own, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	programs := filepath.Dir(r.Environment.Manifold.Binary()) + string(os.PathListSeparator) + tools.BinDir(root)
	r.env = append(os.Environ(), gitIdentity...)
	r.env = append(r.env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main", "HOME="+t.TempDir(),
		"KUBECONFIG="+own, "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	r.names = []string{"https://git.example/shop.git", newBareRepository(t).serveAll() + "/shop.git"}
	return r
}

func TestThePageGettingStartedIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/delivery/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := readPage(string(page))
	if err != nil || len(steps) == 0 {
		t.Fatalf("docs/delivery/getting-started.md has %d steps: %v", len(steps), err)
	}
	r := newReader(t)
	// The page ends with that too, if it is read to its end.
	t.Cleanup(func() { r.Environment.Cleanup(t, "delete", "namespace", "shop", "--ignore-not-found", "--wait=false") })
	for _, step := range steps {
		r.do(step)
	}
}
