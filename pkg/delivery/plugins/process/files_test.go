package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreReadableByTheProgramAlone(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	file := filepath.Join(home, "east.kubeconfig")
	for _, content := range []string{"one", "one", "two!"} {
		if err := WriteFiles(home, nil, map[string]string{"east.kubeconfig": content}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != content {
			t.Errorf("read %q, %v, want %q", got, err, content)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// The folder belongs to the program, which may have put anything there.
func TestALinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(home, "a")); err != nil {
		t.Fatal(err)
	}
	if err := WriteFiles(home, nil, map[string]string{"a": "secret"}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(elsewhere); err != nil || string(got) != "mine" {
		t.Errorf("the file elsewhere has %q, %v", got, err)
	}
	if info, err := os.Lstat(filepath.Join(home, "a")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link is still there: %v", err)
	}
}

func TestFilesLieInTheFolder(t *testing.T) {
	for _, name := range []string{"../a", "/a", "a/b", "", ".", ".."} {
		if err := WriteFiles(filepath.Join(t.TempDir(), "home"), nil, map[string]string{name: "x"}); err == nil {
			t.Errorf("%q is written", name)
		}
	}
}
