// Package life tests that the server keeps plugins alive, and itself from them.
package life

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// dir is where plugins live. Their users have to get there, which they could not in the folder of the environment.
var dir = func() string {
	dir, err := os.MkdirTemp("", "manifold-plugins-")
	if err != nil {
		panic(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		panic(err)
	}
	return filepath.Join(dir, "plugins")
}()

// runs is what the server is started with.
var runs = []string{"--plugins-dir", dir}

// shared is a logical cluster without clusters. Tests use it one after another: they break it.
var shared = framework.NewShared(framework.Options{ManifoldArgs: runs})

func TestMain(m *testing.M) {
	code := shared.Main(m, joined)
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
