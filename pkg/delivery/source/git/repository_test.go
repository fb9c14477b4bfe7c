package git

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a real one, which git itself has made.
type repository struct {
	t   *testing.T
	dir string
}

func newTestRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &repository{t, filepath.Join(t.TempDir(), "shop.git")}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git("init", "--quiet", "--initial-branch=main", ".")
	return r
}

func (r *repository) git(arguments ...string) string {
	r.t.Helper()
	return r.gitReading("", arguments...)
}

func (r *repository) gitReading(in string, arguments ...string) string {
	r.t.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = r.dir
	command.Stdin = strings.NewReader(in)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, each a path and a content, and returns the hash of the commit.
func (r *repository) commit(message string, files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		name = filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", message)
	return r.git("rev-parse", "HEAD")
}

func (r *repository) link(target, name string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) fileURL() string { return "file://" + r.dir }

// served is the repository behind git's own HTTP program.
type served struct {
	*httptest.Server
	fetches int
	// password is asked for unless it is empty.
	password string
}

func (r *repository) serve() *served {
	r.t.Helper()
	program := filepath.Join(strings.TrimSpace(r.git("--exec-path")), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		r.t.Skip("git-http-backend is not installed")
	}
	backend := &cgi.Handler{Path: program, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	s := &served{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, password, _ := request.BasicAuth(); password != s.password {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if request.Method == http.MethodPost {
			s.fetches++
		}
		backend.ServeHTTP(w, request)
	}))
	r.t.Cleanup(s.Close)
	return s
}

func (s *served) url() string { return s.URL + "/shop.git/.git" }

func (s *served) request(ref Ref) Request {
	return Request{URL: s.url(), Ref: ref, Credentials: Credentials{CA: caOf(s.TLS), Username: "ada", Password: s.password}}
}

func caOf(config *tls.Config) []byte {
	var out bytes.Buffer
	for _, certificate := range config.Certificates[0].Certificate {
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	}
	return out.Bytes()
}

// everywhere allows the repositories that the tests make.
var everywhere = []string{"/"}

// anywhere allows loopback addresses, which the tests are at.
func anywhere(net.IP) bool { return true }

func newTestClient(t *testing.T, policy Policy, limits Limits) *Client {
	t.Helper()
	client, err := New(filepath.Join(t.TempDir(), "commits"), policy, limits)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// hook runs a script when something is pushed.
func (r *repository) hook(name, script string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, ".git", "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		r.t.Fatal(err)
	}
}
