package git

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// read resolves and fetches in one.
func read(t *testing.T, client *Client, request Request) (*Checkout, error) {
	t.Helper()
	revision, err := client.Resolve(t.Context(), request)
	if err != nil {
		return nil, err
	}
	checkout, err := client.Fetch(t.Context(), request, revision)
	if err == nil {
		t.Cleanup(func() { checkout.Close() })
	}
	return checkout, err
}

func TestARefLeadsToItsCommit(t *testing.T) {
	r := newTestRepository(t)
	commits := map[string]string{}
	commits["first"] = r.Commit("first", map[string]string{"web.yaml": "first", "deep/er/web.yaml": "deep"})
	r.Git("tag", "1.0.0")
	commits["second"] = r.Commit("second\n\nwith more words", map[string]string{"web.yaml": "second"})
	r.Git("tag", "--annotate", "--message", "a tag of its own", "v1.4.2")
	commits["third"] = r.Commit("third", map[string]string{"web.yaml": "third"})
	r.Git("tag", "v2.0.0-rc.1")
	r.Git("tag", "nightly")
	r.Git("checkout", "--quiet", "-b", "release/1", "1.0.0")
	commits["fix"] = r.Commit("fix", map[string]string{"web.yaml": "fix"})
	r.Git("checkout", "--quiet", "main")
	server := r.serve()

	for name, test := range map[string]struct {
		ref     Ref
		want    string
		refName string
		wantErr error
		says    string
	}{
		"none: the branch that the repository puts first": {ref: Ref{}, want: "third", refName: "refs/heads/main"},
		"a branch":                           {ref: Ref{Branch: "release/1"}, want: "fix", refName: "refs/heads/release/1"},
		"a tag":                              {ref: Ref{Tag: "1.0.0"}, want: "first", refName: "refs/tags/1.0.0"},
		"a tag that is an object of its own": {ref: Ref{Tag: "v1.4.2"}, want: "second", refName: "refs/tags/v1.4.2"},
		"the highest version of a range":     {ref: Ref{Semver: ">=1.0.0"}, want: "second", refName: "refs/tags/v1.4.2"},
		"a version before its release, where the range asks": {ref: Ref{Semver: ">=1.0.0-0"}, want: "third", refName: "refs/tags/v2.0.0-rc.1"},
		"a commit that is no tip":                            {ref: Ref{Commit: commits["first"]}, want: "first"},
		"a commit on a branch":                               {ref: Ref{Branch: "main", Commit: commits["second"]}, wantErr: ErrRefused, says: "at most one"},
		"a branch that is gone":                              {ref: Ref{Branch: "gone"}, wantErr: ErrNoRef, says: `branch "gone"`},
		"a tag that is gone":                                 {ref: Ref{Tag: "3"}, wantErr: ErrNoRef, says: `tag "3"`},
		"a range that no tag is in":                          {ref: Ref{Semver: "^7"}, wantErr: ErrNoRef, says: `version "^7"`},
		"no range at all":                                    {ref: Ref{Semver: "newest"}, wantErr: ErrRefused, says: "ref.semver"},
		"a commit that there is not":                         {ref: Ref{Commit: strings.Repeat("0a", 20)}, wantErr: ErrNoRef, says: "0a0a0a"},
		"part of a hash":                                     {ref: Ref{Commit: "0a0a0a"}, wantErr: ErrRefused, says: "ref.commit"},
		"two at once":                                        {ref: Ref{Branch: "main", Tag: "1.0.0"}, wantErr: ErrRefused, says: "at most one"},
	} {
		for transport, request := range map[string]Request{"file": {URL: r.FileURL(), Ref: test.ref}, "https": server.request(test.ref)} {
			t.Run(name+" over "+transport, func(t *testing.T) {
				checkout, err := read(t, newTestClient(t, Policy{Files: everywhere, Allow: anywhere}, Limits{}), request)
				if !errors.Is(err, test.wantErr) {
					t.Fatalf("error %v, want %v", err, test.wantErr)
				}
				if err != nil {
					if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), request.URL) {
						t.Errorf("error %q does not say %q and name the repository", err, test.says)
					}
					return
				}
				if checkout.Origin.Commit != commits[test.want] || checkout.Origin.Ref != test.refName {
					t.Errorf("origin %+v, want commit %s by %q", checkout.Origin, commits[test.want], test.refName)
				}
				if content, err := fs.ReadFile(checkout.FS(), "web.yaml"); err != nil || string(content) != test.want {
					t.Errorf("web.yaml holds %q (%v), want %q", content, err, test.want)
				}
			})
		}
	}
}

func TestOriginIsSafeToShow(t *testing.T) {
	r := newTestRepository(t)
	tree := r.Git("hash-object", "-t", "tree", "-w", "/dev/null")
	author := "Ada \x1b[31m\xff" + strings.Repeat("a", 1000) + " <ada@example.com> 1767322800 +0100"
	hash := r.GitReading("tree "+tree+"\nauthor "+author+"\ncommitter "+author+"\n\n"+strings.Repeat("\x1b]0;", 400)+"\nsecond line", "hash-object", "-t", "commit", "-w", "--literally", "--stdin")
	r.Git("update-ref", "refs/heads/main", hash)
	checkout, err := read(t, newTestClient(t, Policy{Files: everywhere}, Limits{}), Request{URL: r.FileURL()})
	if err != nil {
		t.Fatal(err)
	}
	origin := checkout.Origin
	if len(origin.Author) > mostAuthor || len(origin.Message) > mostMessage || strings.ContainsAny(origin.Author+origin.Message, "\x1b\n") || !utf8.ValidString(origin.Author) {
		t.Errorf("origin %+v holds what a terminal obeys, or too much", origin)
	}
	if want := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC); !origin.Time.Equal(want) || origin.Time.Location() != time.UTC {
		t.Errorf("time %s, want %s", origin.Time, want)
	}
}

func TestHistoryIsNotFetched(t *testing.T) {
	r := newTestRepository(t)
	first := r.Commit("first", map[string]string{"old.yaml": "old"})
	r.Git("rm", "--quiet", "old.yaml")
	r.Commit("second", map[string]string{"new.yaml": "new"})
	checkout, err := read(t, newTestClient(t, Policy{Allow: anywhere}, Limits{}), r.serve().request(Ref{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openCheckout(checkout.store.Filesystem().Root(), Revision{Commit: first}, Limits{}.withDefaults(), func() {}); !errors.Is(err, ErrNoRef) {
		t.Errorf("the commit before is here as well: %v", err)
	}
}

func TestACommitIsAskedForAloneWhereTheRepositoryGivesItOut(t *testing.T) {
	r := newTestRepository(t)
	first := r.Commit("first", map[string]string{"web.yaml": "first"})
	second := r.Commit("second", map[string]string{"web.yaml": "second"})
	r.Commit("third", map[string]string{"web.yaml": "third"})
	r.Git("config", "uploadpack.allowReachableSHA1InWant", "true")
	checkout, err := read(t, newTestClient(t, Policy{Allow: anywhere}, Limits{}), r.serve().request(Ref{Commit: second}))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := fs.ReadFile(checkout.FS(), "web.yaml"); err != nil || string(content) != "second" {
		t.Errorf("web.yaml holds %q (%v)", content, err)
	}
	if _, err := openCheckout(checkout.store.Filesystem().Root(), Revision{Commit: first}, Limits{}.withDefaults(), func() {}); !errors.Is(err, ErrNoRef) {
		t.Errorf("the commit before is here as well: %v", err)
	}
}

func TestACommitIsFetchedOnceAndKeptWithinABound(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "first"})
	server := r.serve()
	dir := filepath.Join(t.TempDir(), "commits")
	client, err := New(dir, Policy{Allow: anywhere}, Limits{Cache: 1})
	if err != nil {
		t.Fatal(err)
	}
	first, err := read(t, client, server.request(Ref{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, client, server.request(Ref{})); err != nil || server.Fetches() != 1 {
		t.Fatalf("%d fetches (%v), want 1", server.Fetches(), err)
	}
	r.Commit("second", map[string]string{"web.yaml": "second"})
	second, err := read(t, client, server.request(Ref{}))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := fs.ReadFile(first.FS(), "web.yaml"); err != nil || string(content) != "first" {
		t.Errorf("a commit that is read is gone: %q, %v", content, err)
	}
	for _, checkout := range []*Checkout{first, second} {
		checkout.Close()
	}
	if err := os.Mkdir(filepath.Join(dir, incoming+"1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if client, err = New(dir, Policy{Allow: anywhere}, Limits{Cache: 1}); err != nil {
		t.Fatal(err)
	}
	r.Commit("third", map[string]string{"web.yaml": "third"})
	if _, err := read(t, client, server.request(Ref{})); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d folders are left (%v), want that of the last commit alone", len(left), err)
	}
}

func TestWhoMayNotSeeARepositoryDoesNotSeeItInTheCache(t *testing.T) {
	r := newTestRepository(t)
	hash := r.Commit("first", map[string]string{"web.yaml": "first"})
	server := r.serve()
	server.Password = "s3cret-word"
	client := newTestClient(t, Policy{Allow: anywhere}, Limits{})
	request := server.request(Ref{Commit: hash})
	if _, err := read(t, client, request); err != nil {
		t.Fatal(err)
	}
	request.Credentials.Password = "wrong-guess"
	_, err := read(t, client, request)
	if !errors.Is(err, ErrCredentials) {
		t.Fatalf("error %v, want %v", err, ErrCredentials)
	}
	if strings.Contains(err.Error(), "wrong-guess") {
		t.Errorf("error %q shows the password", err)
	}
}

func TestAServerThatNobodyVouchesForIsNotAsked(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "first"})
	request := r.serve().request(Ref{})
	request.Credentials.CA = nil
	_, err := read(t, newTestClient(t, Policy{Allow: anywhere}, Limits{}), request)
	if !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), "ca.crt of a Secret is to hold its certificate authority") {
		t.Errorf("error %v, want %v, and where its authority belongs", err, ErrUntrusted)
	}
}

func TestCredentialsDoNotFollowToAnotherHost(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	here := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL+"/shop.git/info/refs", http.StatusFound))
	defer here.Close()
	_, err := newTestClient(t, Policy{Allow: anywhere}, Limits{}).Resolve(t.Context(), Request{
		URL: here.URL + "/shop.git", Credentials: Credentials{CA: append(gittest.CA(here.TLS), gittest.CA(elsewhere.TLS)...), Username: "ada", Password: "s3cret-word"},
	})
	if !errors.Is(err, ErrRefused) || asked != 0 {
		t.Errorf("error %v and %d calls elsewhere, want %v and none", err, asked, ErrRefused)
	}
}

func TestARepositoryThatDoesNotAnswerCostsItsTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // it listens, and accepts nobody
	_, key := gittest.NewKey(t, "")
	for name, request := range map[string]Request{
		"https": {URL: "https://" + listener.Addr().String() + "/shop.git"},
		"ssh": {URL: "ssh://git@" + listener.Addr().String() + "/shop.git", Credentials: Credentials{
			SSHKey: key, KnownHosts: []byte("example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newTestClient(t, Policy{Allow: anywhere}, Limits{Timeout: 50 * time.Millisecond}).Resolve(t.Context(), request)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer in time") {
				t.Errorf("error %v, want one of time", err)
			}
		})
	}
}

func TestNoRepositoryIsSaidSo(t *testing.T) {
	r := newTestRepository(t)
	server := r.serve()
	empty := server.request(Ref{})
	gone := server.request(Ref{})
	gone.URL = server.URL + "/gone.git"
	for name, test := range map[string]struct {
		request Request
		want    error
	}{
		"an empty one":                {empty, ErrNoRef},
		"an empty one on the disk":    {Request{URL: r.FileURL()}, ErrNoRef},
		"none at all":                 {gone, ErrNoRepository},
		"none at all on the disk":     {Request{URL: "file:///nowhere/at/all"}, ErrNoRepository},
		"one that a name leads to":    {Request{URL: "https://host.invalid/shop.git"}, nil},
		"an answer that is no git's":  {Request{URL: page(t), Credentials: Credentials{}}, nil},
		"an answer that has no end":   {Request{URL: endless(t)}, nil},
		"a commit that is only asked": {server.request(Ref{Commit: strings.Repeat("1", 40)}), ErrNoRef},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, newTestClient(t, Policy{Files: everywhere, PlainHTTP: true, Allow: anywhere}, Limits{}), test.request)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || len(err.Error()) > 1000 {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func page(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("<html>\x1b", 100_000), http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func endless(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		for request.Context().Err() == nil {
			if _, err := w.Write([]byte("003d" + strings.Repeat("a", 40) + " refs/heads/branchbranch\n")); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestPacksAreIndexedAfterOneAnother(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "web"})
	client := newTestClient(t, Policy{Files: everywhere}, Limits{Indexing: 1})
	if err := client.indexing.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	request := Request{URL: r.FileURL()}
	revision, err := client.Resolve(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Fetch(ctx, request, revision); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v while another pack is indexed, want %v", err, context.DeadlineExceeded)
	}
	client.indexing.Release(1)
	if _, err := read(t, client, request); err != nil {
		t.Error(err)
	}
}

func TestAHugeFolderOfARepositoryIsRefused(t *testing.T) {
	r := newTestRepository(t)
	file := r.GitReading("web", "hash-object", "-w", "--stdin")
	raw, err := hex.DecodeString(file)
	if err != nil {
		t.Fatal(err)
	}
	var entries strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&entries, "100644 %07d\x00%s", i, raw)
	}
	tree := r.GitReading(entries.String(), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", tree, "-m", "many"))
	for transport, request := range map[string]Request{"file": {URL: r.FileURL()}, "https": r.serve().request(Ref{})} {
		_, err := read(t, newTestClient(t, Policy{Files: everywhere, Allow: anywhere}, Limits{Files: 1_000_000}), request)
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("over %s: error %v, want %v", transport, err, ErrTooLarge)
		}
	}
}
