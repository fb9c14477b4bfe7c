// Package gittest has git repositories for tests: git itself makes them, and its own programs serve them over HTTP, HTTPS and SSH.
package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is a real one, which git itself has made.
type Repository struct {
	*testing.T
	// Dir is its folder, which lies alone in another one.
	Dir string
}

// New returns an empty repository of that name, with further options for "git init".
func New(t *testing.T, name string, options ...string) *Repository {
	t.Helper()
	r := &Repository{t, filepath.Join(t.TempDir(), name)}
	if err := os.Mkdir(r.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.Git(append([]string{"init", "--quiet", "--initial-branch=main", "."}, options...)...)
	return r
}

// identity is whose commits they are, whatever the machine's git says.
var identity = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
	"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
}

// Git runs git in the repository, and returns what it says.
func (r *Repository) Git(arguments ...string) string {
	r.Helper()
	return r.GitReading("", arguments...)
}

// GitReading runs git in the repository, which reads in.
func (r *Repository) GitReading(in string, arguments ...string) string {
	r.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = r.Dir
	command.Stdin = strings.NewReader(in)
	command.Env = append(os.Environ(), identity...)
	out, err := command.CombinedOutput()
	if err != nil {
		r.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit writes files, each a path and a content, and returns the hash of the commit. A content that begins with "-> " is a link.
func (r *Repository) Commit(message string, files map[string]string) string {
	r.Helper()
	for name, content := range files {
		name = filepath.Join(r.Dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			r.Fatal(err)
		}
		if target, link := strings.CutPrefix(content, "-> "); link {
			if err := os.Symlink(target, name); err != nil {
				r.Fatal(err)
			}
		} else if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			r.Fatal(err)
		}
	}
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message", message)
	return r.Git("rev-parse", "HEAD")
}

// FileURL is the address of the repository on this machine's disk.
func (r *Repository) FileURL() string { return "file://" + r.Dir }
