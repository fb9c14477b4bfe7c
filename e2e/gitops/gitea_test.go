package gitops

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// gitea is a forge as it is released, with a person who has the repository ada/fleet.
type gitea struct {
	*framework.Scenario
	// url is that of the forge, and token the credential of the person, of its API and of git.
	url, token string
	authority  []byte
	client     *http.Client
}

// The repository, and who has it.
const (
	person     = "ada"
	repository = "fleet"
)

// giteaSettings are those of the forge, which serves nobody but the test.
const giteaSettings = `
APP_NAME = e2e
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = <DIR>
[server]
PROTOCOL = https
HTTP_ADDR = 127.0.0.1
HTTP_PORT = <PORT>
ROOT_URL = https://127.0.0.1:<PORT>/
LOCAL_ROOT_URL = https://127.0.0.1:<PORT>/
CERT_FILE = <DIR>/tls.crt
KEY_FILE = <DIR>/tls.key
STATIC_ROOT_PATH = <SOURCE>
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = <DIR>/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = for-this-test-alone
PASSWORD_HASH_ALGO = pbkdf2_v2
[service]
DISABLE_REGISTRATION = true
[repository]
ROOT = <DIR>/repositories
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
MODE = console
LEVEL = Warn
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron.update_checker]
ENABLED = false
`

// startGitea runs a forge until the test ends, whose repository has these files in its branch main.
func startGitea(s *framework.Scenario, files map[string]string) *gitea {
	s.Helper()
	source, err := tools.SourceOf(s.Context(), root(s), tools.Gitea)
	if err != nil {
		s.Fatal(err)
	}
	bin, err := tools.BuildClient(s.Context(), root(s), os.Stdout, tools.Gitea)
	if err != nil {
		s.Fatal(err)
	}
	port, dir := s.FreePort(), s.TempDir()
	g := &gitea{Scenario: s, url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	g.serving(dir)
	settings := filepath.Join(dir, "app.ini")
	text := strings.NewReplacer("<DIR>", dir, "<PORT>", fmt.Sprint(port), "<SOURCE>", source).Replace(giteaSettings)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	command := func(args ...string) string {
		s.Helper()
		cmd := exec.CommandContext(s.Context(), filepath.Join(bin, tools.Gitea), append(args, "--config", settings)...)
		cmd.Env = append(cmd.Environ(), "HOME="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			s.Fatalf("gitea %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
		}
		return strings.TrimSpace(string(out))
	}
	command("migrate")
	command("admin", "user", "create", "--admin", "--username", person, "--password", "for-this-test-alone", "--email", "ada@example.com", "--must-change-password=false")
	lines := framework.Lines(command("admin", "user", "generate-access-token", "--username", person, "--scopes", "all", "--raw"))
	g.token = lines[len(lines)-1]
	server := s.Logical.WithEnv("HOME="+dir).StartOperator(dir, tools.Gitea, "web", "--config", settings)
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("gitea:\n%s", server.LogTail(40))
		}
	})
	s.Logical.Poll("the forge serves", func() error { return g.try(http.MethodGet, "/version", nil, nil) })
	g.call(http.MethodPost, "/user/repos", map[string]any{"name": repository, "private": true, "auto_init": true, "default_branch": "main"}, nil)
	if len(files) > 0 {
		g.commit(files)
	}
	return g
}

// serving makes what the forge serves with.
func (g *gitea) serving(dir string) {
	g.Helper()
	certificate, authority := framework.SelfSigned(g.T)
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		g.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": authority, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			g.Fatal(err)
		}
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(authority)
	g.authority = authority
	g.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}}}
	g.Cleanup(g.client.CloseIdleConnections)
}

// try calls the forge's API as the person, and reads its answer into out unless that is nil.
func (g *gitea) try(method, path string, body, out any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(g.Context(), method, g.url+"/api/v1"+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "token "+g.token)
	response, err := g.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (g *gitea) call(method, path string, body, out any) {
	g.Helper()
	if err := g.try(method, path, body, out); err != nil {
		g.Fatal(err)
	}
}

// of is a path of the repository.
func of(path string) string { return "/repos/" + person + "/" + repository + path }

// cloneURL is the address of the repository.
func (g *gitea) cloneURL() string { return g.url + "/" + person + "/" + repository + ".git" }

// commit writes files of the branch main, and returns the commit.
func (g *gitea) commit(files map[string]string) string {
	g.Helper()
	var changes []map[string]any
	for name, content := range files {
		change := map[string]any{"operation": "create", "path": name, "content": base64.StdEncoding.EncodeToString([]byte(content))}
		var there struct{ SHA string }
		if g.try(http.MethodGet, of("/contents/"+name+"?ref=main"), nil, &there) == nil {
			change["operation"], change["sha"] = "update", there.SHA
		}
		changes = append(changes, change)
	}
	slices.SortFunc(changes, func(a, b map[string]any) int { return strings.Compare(a["path"].(string), b["path"].(string)) })
	var made struct{ Commit struct{ SHA string } }
	g.call(http.MethodPost, of("/contents"), map[string]any{"branch": "main", "message": "test", "files": changes}, &made)
	return made.Commit.SHA
}

// file is the content of a file in a branch.
func (g *gitea) file(branch, name string) string {
	g.Helper()
	var there struct{ Content string }
	g.call(http.MethodGet, of("/contents/"+name+"?ref="+branch), nil, &there)
	content, err := base64.StdEncoding.DecodeString(there.Content)
	if err != nil {
		g.Fatal(err)
	}
	return string(content)
}

// pull is a pull request as the forge tells of it.
type pull struct {
	Number      int
	Title, Body string
	State       string
	Merged      bool
	HTMLURL     string `json:"html_url"`
	Head        struct{ Ref string }
}

// pulls are all pull requests, the oldest first.
func (g *gitea) pulls() (out []pull) {
	g.Helper()
	g.call(http.MethodGet, of("/pulls?state=all"), nil, &out)
	slices.SortFunc(out, func(a, b pull) int { return a.Number - b.Number })
	return out
}

// merge merges a pull request as the person, once the forge has found that it can be.
func (g *gitea) merge(number int) {
	g.Helper()
	g.Logical.Poll("the pull request is merged", func() error {
		return g.try(http.MethodPost, of(fmt.Sprintf("/pulls/%d/merge", number)), map[string]any{"Do": "merge"}, nil)
	})
}

// decline closes a pull request as the person.
func (g *gitea) decline(number int) {
	g.Helper()
	g.call(http.MethodPatch, of(fmt.Sprintf("/pulls/%d", number)), map[string]any{"state": "closed"}, nil)
}
