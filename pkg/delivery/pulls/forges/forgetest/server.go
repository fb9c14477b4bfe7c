// Package forgetest runs forges for tests: a real git server with one repository, which git's own program serves, and beside it the part of a forge's API that
// pull requests need, as its public reference describes it. The one released forge that can be built, Gitea, is what e2e/gitops runs.
package forgetest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// Kinds are the types of forges that there are.
var Kinds = []string{weave.ForgeGitHub, weave.ForgeGitLab, weave.ForgeBitbucketServer, weave.ForgeGitea, weave.ForgeAzureDevOps}

// Token is what the forge takes as a credential, of the API and of git.
const Token = "t0ken-of-the-forge"

// Pull is a pull request.
type Pull struct {
	Number                  int
	Title, Body, Head, Base string
	// Fork says that the head is a branch of somebody's copy.
	Fork bool
	// State is open, merged or closed.
	State    string
	Comments []string
}

// Forge is a forge with one repository.
type Forge struct {
	*testing.T
	*httptest.Server
	Kind string
	// Refuse answers instead of the API, if it returns true.
	Refuse func(w http.ResponseWriter, r *http.Request) bool

	dir string
	git http.Handler

	mu       sync.Mutex
	pulls    []*Pull
	requests []string
}

// path is where the clone URL of a kind leads.
func path(kind string) string {
	switch kind {
	case weave.ForgeBitbucketServer:
		return "/scm/SHOP/fleet.git"
	case weave.ForgeAzureDevOps:
		return "/acme/shop/_git/fleet"
	case weave.ForgeGitLab:
		return "/acme/teams/shop/fleet.git"
	}
	return "/acme/fleet.git"
}

// New returns a forge whose repository has these files in its branch main.
func New(t *testing.T, kind string, files map[string]string) *Forge {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	f := &Forge{T: t, Kind: kind, dir: filepath.Join(root, filepath.FromSlash(path(kind)))}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f.Git("", "init", "--quiet", "--bare", "--initial-branch=main", ".")
	f.Git("", "config", "http.receivepack", "true")
	f.Commit("main", files)
	program := filepath.Join(f.Git("", "--exec-path"), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		t.Skip("git-http-backend is not installed")
	}
	f.git = &cgi.Handler{Path: program, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Server.Close)
	return f
}

// CloneURL is the address of the repository.
func (f *Forge) CloneURL() string { return f.Server.URL + path(f.Kind) }

// CA is the certificate of the server, in PEM.
func (f *Forge) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Server.Certificate().Raw})
}

// Git runs git in the repository, and returns what it says without the end of its last line.
func (f *Forge) Git(in string, arguments ...string) string {
	f.Helper()
	return strings.TrimSuffix(f.run(in, arguments...), "\n")
}

func (f *Forge) run(in string, arguments ...string) string {
	f.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = f.dir
	command.Stdin = strings.NewReader(in)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := command.CombinedOutput()
	if err != nil {
		f.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// Commit writes files of a branch, on top of what it has. A content that begins with "-> " is a link.
func (f *Forge) Commit(branch string, files map[string]string) {
	f.Helper()
	tip, there := f.tip(branch)
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/%s\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 4\ntest\n", branch)
	if there {
		fmt.Fprintf(&in, "from %s\n", tip)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		mode, content := "100644", files[name]
		if target, link := strings.CutPrefix(content, "-> "); link {
			mode, content = "120000", target
		}
		fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, name, len(content), content)
	}
	f.Git(in.String(), "fast-import", "--quiet")
}

// Hook runs a script in the repository when git says so.
func (f *Forge) Hook(name, script string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		f.Fatal(err)
	}
}

func (f *Forge) tip(branch string) (string, bool) {
	command := exec.Command("git", "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	command.Dir = f.dir
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err == nil
}

// File is the content of a file in a branch.
func (f *Forge) File(branch, name string) string {
	f.Helper()
	return f.run("", "cat-file", "blob", branch+":"+name)
}

// Branches are those of the repository.
func (f *Forge) Branches() []string {
	f.Helper()
	return strings.Fields(f.Git("", "for-each-ref", "--format=%(refname:short)", "refs/heads"))
}

// Pulls are the pull requests, in the order in which they were opened.
func (f *Forge) Pulls() []Pull {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Pull
	for _, pull := range f.pulls {
		out = append(out, *pull)
	}
	return out
}

// Open opens a pull request as a person does.
func (f *Forge) Open(pull Pull) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pull.Number, pull.State = len(f.pulls)+1, "open"
	f.pulls = append(f.pulls, &pull)
}

// Decline closes a pull request as a person does.
func (f *Forge) Decline(number int) { f.set(number, "closed") }

// Reopen opens a pull request again as a person does.
func (f *Forge) Reopen(number int) { f.set(number, "open") }

// Merge merges a pull request as a person does.
func (f *Forge) Merge(number int) {
	f.Helper()
	pull := f.Pulls()[number-1]
	tree := f.Git("", "merge-tree", "--write-tree", pull.Base, pull.Head)
	commit := f.Git("", "commit-tree", "-m", "merge", "-p", pull.Base, "-p", pull.Head, tree)
	f.Git("", "update-ref", "refs/heads/"+pull.Base, commit)
	f.set(number, "merged")
}

func (f *Forge) set(number int, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls[number-1].State = state
}

// Requests are what the API was asked, each a method and a path, since it was asked for last.
func (f *Forge) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

// ServeHTTP implements http.Handler.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, path(f.Kind)+"/") {
		f.serveGit(w, r)
		return
	}
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	f.mu.Unlock()
	if f.Refuse != nil && f.Refuse(w, r) {
		return
	}
	if !f.knows(r) {
		http.Error(w, `{"message": "who are you?"}`, http.StatusUnauthorized)
		return
	}
	f.api().ServeHTTP(w, r)
}

func (f *Forge) serveGit(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); password != Token {
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	f.git.ServeHTTP(w, r)
}

// knows reports whether a call of the API says who calls as the forge wants it.
func (f *Forge) knows(r *http.Request) bool {
	if f.Kind == weave.ForgeAzureDevOps {
		_, password, _ := r.BasicAuth()
		return password == Token
	}
	return r.Header.Get("Authorization") == "Bearer "+Token
}

// api are the paths of the forge's API.
func (f *Forge) api() http.Handler {
	switch f.Kind {
	case weave.ForgeGitHub:
		return f.github("/api/v3", "merged_at")
	case weave.ForgeGitea:
		return f.github("/api/v1", "merged")
	case weave.ForgeGitLab:
		return f.gitlab()
	case weave.ForgeBitbucketServer:
		return f.bitbucket()
	case weave.ForgeAzureDevOps:
		return f.azure()
	}
	panic("there is no such forge as " + f.Kind)
}

// found returns the pull request that a path names.
func (f *Forge) found(w http.ResponseWriter, r *http.Request) *Pull {
	for _, pull := range f.pulls {
		if fmt.Sprint(pull.Number) == r.PathValue("number") {
			return pull
		}
	}
	http.Error(w, `{"message": "there is no such pull request"}`, http.StatusNotFound)
	return nil
}

// create opens a pull request that was asked for, unless its branch is not there, has one or has nothing new.
func (f *Forge) create(w http.ResponseWriter, pull Pull, refusal int) *Pull {
	head, there := f.tip(pull.Head)
	base, also := f.tip(pull.Base)
	taken := slices.ContainsFunc(f.pulls, func(other *Pull) bool { return other.State == "open" && other.Head == pull.Head && !other.Fork })
	if !there || !also || taken || head == base || pull.Title == "" || len(pull.Body) > 4000 {
		http.Error(w, `{"message": "the pull request cannot be opened"}`, refusal)
		return nil
	}
	pull.Number, pull.State = len(f.pulls)+1, "open"
	f.pulls = append(f.pulls, &pull)
	return &pull
}

// newest are the pull requests in a state, all of them if it is empty, the newest first, of a page.
func (f *Forge) newest(state string, skip, size int) []*Pull {
	var out []*Pull
	for _, pull := range f.pulls {
		if state == "" || pull.State == state {
			out = append(out, pull)
		}
	}
	slices.Reverse(out)
	out = out[min(skip, len(out)):]
	return out[:min(size, len(out))]
}

// handle registers a handler that may read and change the pull requests.
func (f *Forge) handle(mux *http.ServeMux, pattern string, handler func(w http.ResponseWriter, r *http.Request, body map[string]any)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{}
		if r.ContentLength > 0 {
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
				http.Error(w, `{"message": "the body is no JSON"}`, http.StatusUnsupportedMediaType)
				return
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				http.Error(w, `{"message": "the body is no JSON"}`, http.StatusBadRequest)
				return
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		handler(w, r, body)
	})
}

// answer writes an answer.
func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // who has hung up needs none
}

func textOf(body map[string]any, keys ...string) string {
	var at any = body
	for _, key := range keys {
		within, _ := at.(map[string]any)
		at = within[key]
	}
	out, _ := at.(string)
	return out
}
