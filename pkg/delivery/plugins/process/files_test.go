package process

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
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

// The program may put anything in the place of a file between two looks at it.
func TestWhatIsNoFileIsReplacedAndNobodyWaitsForIt(t *testing.T) {
	home := t.TempDir()
	const content = "secret"
	if err := os.WriteFile(filepath.Join(home, "real"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a pipe that nobody writes to":     func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to a file of that content": func(path string) error { return os.Symlink("real", path) },
		"a link to itself":                 func(path string) error { return os.Symlink("a", path) },
		"a file that is larger than it looks": func(path string) error {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(home, "a")
			if err := errors.Join(os.RemoveAll(path), put(path)); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(home)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if has(root, "a", content) {
				t.Error("it is taken for the file")
			}
			if err := WriteFiles(home, nil, map[string]string{"a": content}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != content || !has(root, "a", content) {
				t.Errorf("the file has %q, %v", got, err)
			}
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
				t.Errorf("it is no file: %v, %v", info, err)
			}
		})
	}
}
