package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// pushable is a repository with files of several kinds, which takes what is pushed.
func pushable(t *testing.T) (*repository, served, *Client) {
	t.Helper()
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"apps/web.yaml": "tag: 1\n", "apps/deep/er/api.yaml": "tag: 1\n", "run.sh": "exit", "other/x": "x"})
	r.link("apps/web.yaml", "link.yaml")
	if err := os.Chmod(filepath.Join(r.Dir, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.Commit("second", nil)
	r.Git("config", "http.receivepack", "true")
	return r, r.serve(), newTestClient(t, Policy{Allow: anywhere}, Limits{})
}

func at(t *testing.T, client *Client, request Request) *Checkout {
	t.Helper()
	checkout, err := read(t, client, request)
	if err != nil {
		t.Fatal(err)
	}
	return checkout
}

func change(branch string, files map[string]string) Change {
	out := Change{Branch: branch, Files: map[string][]byte{}, Author: "Manifold", Email: "m@example.com", Message: "Promote\n\nall\n", Time: time.Unix(1767323045, 0).UTC()}
	for name, content := range files {
		out.Files[name] = []byte(content)
	}
	return out
}

func TestAChangeIsPushedToANewBranchAndThenOnTopOfIt(t *testing.T) {
	r, server, client := pushable(t)
	request := server.request(Ref{Branch: "main"})
	commit, err := client.Push(t.Context(), request, at(t, client, request), change("promotion/a", map[string]string{"apps/web.yaml": "tag: 2\n", "apps/deep/er/api.yaml": "tag: 2\n", "run.sh": "exit 1"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Git("rev-parse", "promotion/a"); got != commit {
		t.Errorf("the branch leads to %s, want %s", got, commit)
	}
	r.Git("fsck", "--strict")
	want := ":100644 100644 apps/deep/er/api.yaml,:100644 100644 apps/web.yaml,:100755 100755 run.sh"
	var changed []string
	for line := range strings.Lines(r.Git("diff", "--raw", "main", "promotion/a")) {
		fields := strings.Fields(line)
		changed = append(changed, fmt.Sprint(fields[0], " ", fields[1], " ", fields[5]))
	}
	if got := strings.Join(changed, ","); got != want {
		t.Errorf("it changes %s, want %s", got, want)
	}
	if got := r.Git("log", "-1", "--format=%an|%ae|%ct|%B|%P", "promotion/a"); got != "Manifold|m@example.com|1767323045|Promote\n\nall\n|"+r.Git("rev-parse", "main") {
		t.Errorf("the commit is %q", got)
	}

	request.Ref = Ref{Branch: "promotion/a"}
	onTop := at(t, client, request)
	if _, err := client.Push(t.Context(), request, onTop, change("promotion/a", map[string]string{"other/x": "y"})); err != nil {
		t.Fatal(err)
	}
	if got := r.Git("rev-list", "--count", "main..promotion/a"); got != "2" {
		t.Errorf("the branch has %s commits, want 2", got)
	}
	if _, err := client.Push(t.Context(), request, onTop, change("promotion/a", map[string]string{"other/x": "z"})); !errors.Is(err, ErrRejected) {
		t.Errorf("others would be overwritten: error %v, want %v", err, ErrRejected)
	}
}

func TestAChangeIsPushedOverSSH(t *testing.T) {
	r, _, client := pushable(t)
	user, private := gittest.NewKey(t, "")
	server := gittest.ServeSSH(t, user.PublicKey())
	request := Request{URL: server.CloneURL(r.Repository), Ref: Ref{Branch: "main"}, Credentials: Credentials{SSHKey: private, KnownHosts: server.KnownHosts()}}
	commit, err := client.Push(t.Context(), request, at(t, client, request), change("a", map[string]string{"other/x": "y"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Git("rev-parse", "a"); got != commit {
		t.Errorf("the branch leads to %s, want %s", got, commit)
	}
	r.hook("update", "exit 1")
	if _, err := client.Push(t.Context(), request, at(t, client, request), change("b", nil)); !errors.Is(err, ErrRejected) {
		t.Errorf("error %v, want %v", err, ErrRejected)
	}
}

// Azure DevOps answers nobody else.
func TestWhoAsksAzureDevOpsSaysThatItNegotiates(t *testing.T) {
	r, server, _ := pushable(t)
	if err := os.MkdirAll(filepath.Join(filepath.Dir(r.Dir), "_git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.Dir, filepath.Join(filepath.Dir(r.Dir), "_git", "shop")); err != nil {
		t.Fatal(err)
	}
	request := server.request(Ref{Branch: "main"})
	request.URL = server.URL + "/_git/shop/.git"
	client := newTestClient(t, Policy{Allow: anywhere}, Limits{})
	if _, err := client.Push(t.Context(), request, at(t, client, request), change("a", map[string]string{"other/x": "y"})); err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotBePushedIsRefused(t *testing.T) {
	r, server, _ := pushable(t)
	client := newTestClient(t, Policy{Allow: anywhere, Files: everywhere}, Limits{})
	request := server.request(Ref{Branch: "main"})
	checkout := at(t, client, request)
	tip := r.Git("rev-parse", "main")
	for name, test := range map[string]struct {
		change  Change
		request Request
		is      error
	}{
		"a file that is not there":     {change("a", map[string]string{"apps/new.yaml": "x"}), request, ErrContent},
		"a file that is a link":        {change("a", map[string]string{"link.yaml": "x"}), request, ErrContent},
		"a file that is a folder":      {change("a", map[string]string{"apps": "x"}), request, ErrContent},
		"a file outside":               {change("a", map[string]string{"../x": "x"}), request, ErrContent},
		"a branch of no name":          {change("", nil), request, ErrRefused},
		"a branch of an odd name":      {change("a..b", nil), request, ErrRefused},
		"a branch with other commits":  {Change{Branch: "other"}, request, ErrRejected},
		"a password that is wrong":     {change("a", nil), Request{URL: request.URL, Credentials: Credentials{CA: request.Credentials.CA, Username: "ada", Password: "wrong"}}, ErrCredentials},
		"a repository that is a file":  {change("a", nil), Request{URL: r.FileURL()}, ErrRefused},
		"an address that is forbidden": {change("a", nil), Request{URL: "http://192.0.2.1/a"}, ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			server.Password = "right"
			defer func() { server.Password = "" }()
			if test.request.Credentials.Password == "" {
				test.request.Credentials.Username, test.request.Credentials.Password = "ada", "right"
			}
			r.Git("branch", "--force", "other", "main~1")
			if _, err := client.Push(t.Context(), test.request, checkout, test.change); !errors.Is(err, test.is) || strings.Contains(err.Error(), "wrong") {
				t.Errorf("error %v, want %v", err, test.is)
			}
		})
	}
	if got := r.Git("rev-parse", "main"); got != tip || r.Git("branch", "--list", "a") != "" {
		t.Error("something was pushed")
	}
}

func TestAHookThatRefusesIsTold(t *testing.T) {
	r, server, client := pushable(t)
	r.hook("update", "exit 1")
	request := server.request(Ref{Branch: "main"})
	if _, err := client.Push(t.Context(), request, at(t, client, request), change("a", nil)); !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "hook declined") {
		t.Errorf("error %v, want %v", err, ErrRejected)
	}
}

func TestFilesAreHandedOnWithoutLinks(t *testing.T) {
	_, server, client := pushable(t)
	var got []string
	err := at(t, client, server.request(Ref{Branch: "main"})).Regular(func(name string, size int64, read func() ([]byte, error)) error {
		content, err := read()
		if int64(len(content)) != size {
			t.Errorf("%s has %d bytes, and %d were said", name, len(content), size)
		}
		got = append(got, name)
		return err
	})
	if want := []string{"apps/deep/er/api.yaml", "apps/web.yaml", "other/x", "run.sh"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v and error %v, want %v", got, err, want)
	}
	stop := errors.New("stop")
	err = at(t, client, server.request(Ref{Branch: "main"})).Regular(func(string, int64, func() ([]byte, error)) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
}

func TestAPushEndsWithItsContext(t *testing.T) {
	_, server, client := pushable(t)
	request := server.request(Ref{Branch: "main"})
	checkout := at(t, client, request)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Push(ctx, request, checkout, change("a", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
