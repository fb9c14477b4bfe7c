package delivery

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitRepository is a real one, which git itself has made.
type gitRepository struct {
	*testing.T
	dir string
}

func newGitRepository(t *testing.T) *gitRepository {
	t.Helper()
	return initRepository(t, "shop")
}

// newBareRepository is an empty one, which is called shop.git and takes what is pushed to it.
func newBareRepository(t *testing.T) *gitRepository {
	t.Helper()
	r := initRepository(t, "shop.git", "--bare")
	r.git("config", "http.receivepack", "true")
	return r
}

func initRepository(t *testing.T, name string, arguments ...string) *gitRepository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &gitRepository{t, filepath.Join(t.TempDir(), name)}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git(append([]string{"init", "--quiet", "--initial-branch=main", "."}, arguments...)...)
	return r
}

// gitIdentity is whose commits they are, whatever the machine's git says.
var gitIdentity = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
	"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
}

func (r *gitRepository) git(arguments ...string) string {
	r.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = r.dir
	command.Env = append(os.Environ(), gitIdentity...)
	out, err := command.CombinedOutput()
	if err != nil {
		r.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, each a path and a content.
func (r *gitRepository) commit(message string, files map[string]string) {
	r.Helper()
	for name, content := range files {
		name = filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			r.Fatal(err)
		}
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message", message)
}

// serve returns the address of the repository over HTTP.
func (r *gitRepository) serve() string {
	r.Helper()
	return r.serveAll() + "/shop/.git"
}

// serveAll has git's own program answer over HTTP, and returns the address of the folder that the repository is in.
func (r *gitRepository) serveAll() string {
	r.Helper()
	program := filepath.Join(r.git("--exec-path"), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		r.Skip("git-http-backend is not installed")
	}
	server := httptest.NewServer(&cgi.Handler{Path: program, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}})
	r.Cleanup(server.Close)
	return server.URL
}
