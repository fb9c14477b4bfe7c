package git

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

func TestAddressesThatMayNotBeCalledAreNotCalled(t *testing.T) {
	called := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer server.Close()
	_, key := gittest.NewKey(t, "")
	withKey := Credentials{SSHKey: key, KnownHosts: []byte("\n"), CA: gittest.CA(server.TLS)}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, url := range []string{
		server.URL + "/shop.git",
		"https://localhost:" + port + "/shop.git",
		"https://0.0.0.0:" + port + "/shop.git",
		"https://[::ffff:127.0.0.1]:" + port + "/shop.git",
		"ssh://git@" + server.Listener.Addr().String() + "/shop.git",
	} {
		_, err := newTestClient(t, Policy{}, Limits{}).Resolve(t.Context(), Request{URL: url, Credentials: withKey})
		if !errors.Is(err, ErrRefused) || called != 0 {
			t.Errorf("%s: error %v and %d calls, want %v and none", url, err, called, ErrRefused)
		}
	}
}

func TestURLsThatAreNotAllowedAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		request Request
		policy  Policy
		says    string
	}{
		"a file":                            {request: Request{URL: "file:///etc"}, says: "--outbound-files"},
		"a path":                            {request: Request{URL: "/etc"}, says: "own disk"},
		"a path that is relative":           {request: Request{URL: "../etc"}, says: "own disk"},
		"a program":                         {request: Request{URL: "ext::sh -c id"}, says: "private key"},
		"git's own protocol":                {request: Request{URL: "git://example.com/shop.git"}, says: `"git"`},
		"another scheme":                    {request: Request{URL: "gopher://example.com/shop.git"}, says: `"gopher"`},
		"http":                              {request: Request{URL: "http://example.com/shop.git"}, says: "use https"},
		"http with a password":              {request: Request{URL: "http://example.com/shop.git", Credentials: Credentials{Password: "p"}}, policy: Policy{PlainHTTP: true}, says: "not sent over http"},
		"a password in the URL":             {request: Request{URL: "https://ada:s3cret-word@example.com/shop.git"}, says: "Secret"},
		"a user in the URL":                 {request: Request{URL: "https://s3cret-word@example.com/shop.git"}, says: "Secret"},
		"no host":                           {request: Request{URL: "https:///shop.git"}, says: "a host is missing"},
		"control characters":                {request: Request{URL: "https://example.com/\x1b[31m"}, says: "control characters"},
		"too long a URL":                    {request: Request{URL: "https://example.com/" + strings.Repeat("a", 3000)}, says: "at most"},
		"ssh without a key":                 {request: Request{URL: "git@example.com:shop.git"}, says: "credentials: ssh needs a private key, which identity of a Secret holds"},
		"ssh with a host that nobody knows": {request: Request{URL: "git@example.com:shop.git", Credentials: Credentials{SSHKey: []byte("k")}}, says: "known_hosts"},
		"ssh with what is no key":           {request: Request{URL: "git@example.com:shop.git", Credentials: Credentials{SSHKey: []byte("k"), KnownHosts: []byte("\n")}}, says: "cannot be read"},
		"a CA that is none":                 {request: Request{URL: "https://example.com/shop.git", Credentials: Credentials{CA: []byte("x")}}, says: "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newTestClient(t, test.policy, Limits{}).Resolve(t.Context(), test.request)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret-word") {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}

func TestRepositoriesAreReadBelowTheFoldersThatAreAllowedAlone(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "web"})
	allowed := t.TempDir()
	inside := filepath.Join(allowed, "shop.git")
	r.Git("clone", "--quiet", "--bare", r.Dir, inside)
	r.Git("clone", "--quiet", r.Dir, filepath.Join(allowed, "tree"))
	for target, name := range map[string]string{r.Dir: "leading-out", inside: "leading-on"} {
		if err := os.Symlink(target, filepath.Join(allowed, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(allowed, "linked"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(r.Dir, ".git"), filepath.Join(allowed, "linked", ".git")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(allowed, link); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path string
		want error
	}{
		"one below":                         {inside, nil},
		"one with its files beside it":      {filepath.Join(allowed, "tree"), nil},
		"a link to one below":               {filepath.Join(allowed, "leading-on"), nil},
		"a link that leads there":           {link + "/shop.git", nil},
		"none there":                        {filepath.Join(allowed, "gone.git"), ErrNoRepository},
		"a folder that is none":             {allowed, ErrNoRepository},
		"one elsewhere":                     {r.Dir, ErrRefused},
		"none elsewhere":                    {r.Dir + "-gone", ErrRefused},
		"a way out":                         {allowed + "/../" + filepath.Base(filepath.Dir(r.Dir)), ErrRefused},
		"a link out":                        {filepath.Join(allowed, "leading-out"), ErrRefused},
		"a folder whose objects are linked": {filepath.Join(allowed, "linked"), ErrRefused},
		"a name that begins like it":        {allowed + "-too/shop.git", ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, newTestClient(t, Policy{Files: []string{allowed}}, Limits{}), Request{URL: "file://" + test.path})
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if test.want == ErrRefused && !strings.Contains(err.Error(), "--outbound-files") {
				t.Errorf("error %v does not name the flag", err)
			}
		})
	}
}

func TestARepositoryLeadsToNoOtherOne(t *testing.T) {
	secret := newTestRepository(t)
	commit := secret.Commit("secret", map[string]string{"web.yaml": "s3cret-word"})
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "web"})
	if err := os.WriteFile(filepath.Join(r.Dir, ".git/objects/info/alternates"), []byte(filepath.Join(secret.Dir, ".git/objects")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Git("update-ref", "refs/heads/main", commit)
	client := newTestClient(t, Policy{Files: []string{r.Dir}}, Limits{})
	if _, err := read(t, client, Request{URL: r.FileURL()}); err == nil {
		t.Error("a repository shows the objects of one that is not below the folder")
	}
}
