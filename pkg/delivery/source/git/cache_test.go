package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestManyMayAskForTheSameCommitAtOnce(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "first", "api.yaml": "first"})
	server := r.serve()
	client := newTestClient(t, Policy{Allow: anywhere}, Limits{Cache: 1})
	revision, err := client.Resolve(t.Context(), server.request(Ref{}))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			checkout, err := client.Fetch(t.Context(), server.request(Ref{}), revision)
			if err != nil {
				t.Error(err)
				return
			}
			defer checkout.Close()
			err = fs.WalkDir(checkout.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					_, err = fs.ReadFile(checkout.FS(), name)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if server.Fetches() != 1 {
		t.Errorf("%d fetches, want 1", server.Fetches())
	}
}

// hanging has a commit of a repository fetched that does not come before the test says so.
func hanging(t *testing.T, cache *cache, url, commit string) (come chan<- error, done <-chan error) {
	t.Helper()
	begun, wait, result := make(chan struct{}), make(chan error), make(chan error, 1)
	go func() {
		_, _, err := cache.take(context.Background(), url, commit, func(string) error {
			close(begun)
			return <-wait
		})
		result <- err
	}()
	<-begun
	return wait, result
}

func newTestCache(t *testing.T, most int64) *cache {
	t.Helper()
	out, err := openCache(t.TempDir(), most)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// usersOf counts those who have the lock of a name or wait for it.
func usersOf(t *turns, name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[name].users
}

// filled fills the folder of a commit.
func filled(dir string) error {
	return os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600)
}

func TestACommitThatDoesNotComeKeepsNobodyWaitingButThoseWhoWantIt(t *testing.T) {
	const slow = "https://slow.example/shop.git"
	commit := strings.Repeat("1", 40)
	cache := newTestCache(t, 1<<20)
	come, done := hanging(t, cache, slow, commit)

	for i := range 500 {
		_, release, err := cache.take(t.Context(), fmt.Sprintf("https://git.example/%d.git", i), commit, filled)
		if err != nil {
			t.Fatalf("another repository: %v", err)
		}
		release()
	}

	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() {
		_, _, err := cache.take(ctx, slow, commit, func(string) error { return errors.New("fetched twice at a time") })
		second <- err
	}()
	for usersOf(&cache.fetching, keyOf(slow, commit)) < 2 {
		runtime.Gosched()
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another fetch of the same commit") {
		t.Errorf("error %v of one whose time is up, want %v, and what was waited for", err, context.Canceled)
	}

	third := make(chan error)
	go func() {
		_, release, err := cache.take(t.Context(), slow, commit, filled)
		if err == nil {
			release()
		}
		third <- err
	}()
	gone := errors.New("gone")
	come <- gone
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("error %v of the first, want %v", err, gone)
	}
	if err := <-third; err != nil {
		t.Errorf("error %v of one who waited for a fetch that came to nothing, want another fetch", err)
	}
	if left := len(cache.fetching.names); left != 0 {
		t.Errorf("%d locks are left that nobody has", left)
	}
}

func TestWhoWaitsForARepositoryThatHangsGivesUpInHisOwnTime(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "first"})
	backend, begun, answer := r.Backend(), make(chan struct{}), make(chan struct{})
	var hung sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost {
			hung.Do(func() {
				close(begun)
				<-answer
			})
		}
		backend.ServeHTTP(w, request)
	}))
	defer server.Close()
	client := newTestClient(t, Policy{Allow: anywhere, PlainHTTP: true}, Limits{})
	request := Request{URL: server.URL + r.Path(), Ref: Ref{Branch: "main"}}
	revision, err := client.Resolve(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(ctx context.Context) <-chan error {
		out := make(chan error, 1)
		go func() {
			checkout, err := client.Fetch(ctx, request, revision)
			if err == nil {
				checkout.Close()
			}
			out <- err
		}()
		return out
	}

	first := fetch(t.Context())
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	second := fetch(ctx)
	for usersOf(&client.cache.fetching, keyOf(request.URL, revision.Commit)) < 2 {
		runtime.Gosched()
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of one whose time is up, want %v", err, context.Canceled)
	}
	close(answer)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-fetch(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsInTheCacheIsHadAtOnce(t *testing.T) {
	const url = "https://git.example/shop.git"
	commit := strings.Repeat("1", 40)
	cache := newTestCache(t, 1<<20)
	if _, release, err := cache.take(t.Context(), url, commit, filled); err != nil {
		t.Fatal(err)
	} else {
		release()
	}
	done, err := cache.fetching.take(t.Context(), keyOf(url, commit))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	dir, release, err := cache.take(t.Context(), url, commit, func(string) error { return errors.New("fetched again") })
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if content, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(content) != "content" {
		t.Errorf("the file has %q (%v)", content, err)
	}
}

// Each commit is put away at once in a cache that has no room for any.
func TestACommitIsNotRemovedBeforeWhoFetchedItHasReadIt(t *testing.T) {
	cache := newTestCache(t, 1)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 100 {
				dir, release, err := cache.take(t.Context(), fmt.Sprint(i, "/", j), strings.Repeat("1", 40), filled)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
					t.Error(err)
				}
				release()
			}
		})
	}
	group.Wait()
}
