package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataDirectoryServesOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(path); err == nil || !strings.Contains(err.Error(), "another manifold") {
		t.Errorf("error %v of a second opener, want it to tell of the first", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openDataDir(path)
	if err != nil {
		t.Fatalf("it cannot be opened again: %v", err)
	}
	defer again.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode %o, want 700", got)
	}
	if got, want := again.join("pki", "ca.crt"), filepath.Join(path, "pki", "ca.crt"); got != want {
		t.Errorf("joined %s, want %s", got, want)
	}
}
