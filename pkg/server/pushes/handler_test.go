package pushes

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const right = "s3cret-word"

// known are applications and their secrets, and what was announced.
type known struct {
	apps      map[string]*v1alpha1.Application
	secrets   map[string]string
	filling   bool
	mu        sync.Mutex
	announced []string
}

func (k *known) HasSynced() bool { return !k.filling }

func (k *known) Hook(name cache.ObjectName) (*v1alpha1.Application, []byte) {
	return k.apps[name.String()], []byte(k.secrets[name.String()])
}

func (k *known) Announce(name cache.ObjectName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.announced = append(k.announced, name.String())
}

func following(ref *v1alpha1.GitRef) *v1alpha1.Application {
	out := &v1alpha1.Application{}
	out.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example/shop.git", Ref: ref}
	return out
}

// shop has an application that follows main, and one without a secret.
func shop() *known {
	main := &v1alpha1.GitRef{Branch: "main"}
	return &known{apps: map[string]*v1alpha1.Application{"shop/web": following(main), "shop/bare": following(main)}, secrets: map[string]string{"shop/web": right}}
}

func newHandler(apps Applications) *Handler {
	return New(apps, clocktesting.NewFakePassiveClock(time.Now()), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
}

func digest(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func push(path, body string, headers map[string]string) *http.Request {
	out := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for name, value := range headers {
		out.Header.Set(name, value)
	}
	return out
}

func answer(h http.Handler, r *http.Request) *http.Response {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder.Result()
}

const ofMain = `{"ref":"refs/heads/main","repository":{"default_branch":"main"}}`

// gitHub are the headers of a push as GitHub signs it.
func gitHub(secret, body string) map[string]string {
	return map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + digest(secret, body)}
}

func TestEveryForgeAnnouncesItsPushes(t *testing.T) {
	const (
		cloud  = `{"push":{"changes":[{"old":{"type":"branch","name":"other"},"new":null},{"old":null,"new":{"type":"branch","name":"main"}}]}}`
		server = `{"changes":[{"ref":{"id":"refs/heads/other"}},{"ref":{"id":"refs/heads/main"}}]}`
	)
	for name, test := range map[string]struct {
		body    string
		headers map[string]string
		want    int
	}{
		"GitHub": {ofMain, gitHub(right, ofMain), 202},
		"GitHub, which asks whether anybody is there": {`{"zen":"x"}`, map[string]string{"X-GitHub-Event": "ping", "X-Hub-Signature-256": "sha256=" + digest(right, `{"zen":"x"}`)}, 204},
		"Gitea":                                {ofMain, map[string]string{"X-Gitea-Event": "push", "X-Gitea-Signature": digest(right, ofMain)}, 202},
		"Forgejo":                              {ofMain, map[string]string{"X-Forgejo-Event": "push", "X-Forgejo-Signature": digest(right, ofMain)}, 202},
		"Gogs":                                 {ofMain, map[string]string{"X-Gogs-Event": "push", "X-Gogs-Signature": digest(right, ofMain)}, 202},
		"GitLab":                               {ofMain, map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": right}, 202},
		"GitLab, of a tag that nobody follows": {`{"ref":"refs/tags/v1"}`, map[string]string{"X-Gitlab-Event": "Tag Push Hook", "X-Gitlab-Token": right}, 204},
		"Bitbucket Cloud":                      {cloud, map[string]string{"X-Event-Key": "repo:push", "X-Hub-Signature": "sha256=" + digest(right, cloud)}, 202},
		"Bitbucket Data Center":                {server, map[string]string{"X-Event-Key": "repo:refs_changed", "X-Hub-Signature": "sha256=" + digest(right, server)}, 202},
		"a push that is no JSON":               {"payload=x", gitHub(right, "payload=x"), 400},
		"no event at all":                      {ofMain, map[string]string{"X-Hub-Signature-256": "sha256=" + digest(right, ofMain)}, 204},
	} {
		t.Run(name, func(t *testing.T) {
			apps := shop()
			got := answer(newHandler(apps), push("/hooks/git/shop/web", test.body, test.headers))
			if got.StatusCode != test.want || (len(apps.announced) == 1) != (test.want == 202) {
				t.Errorf("%s, announced to %v; want %d", got.Status, apps.announced, test.want)
			}
		})
	}
}

func TestAStrangerLearnsNothing(t *testing.T) {
	said := func(response *http.Response) string {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(response.Status, response.Header, string(body))
	}
	want := said(answer(newHandler(shop()), push("/hooks/git/shop/web", ofMain, gitHub("wrong", ofMain))))
	if !strings.HasPrefix(want, "401") {
		t.Fatalf("a wrong signature is answered by %s", want)
	}
	for name, request := range map[string]*http.Request{
		"no signature":                       push("/hooks/git/shop/web", ofMain, map[string]string{"X-GitHub-Event": "push"}),
		"an empty token":                     push("/hooks/git/shop/web", ofMain, map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": ""}),
		"the signature of another body":      push("/hooks/git/shop/web", ofMain+" ", gitHub(right, ofMain)),
		"a signature by SHA-1":               push("/hooks/git/shop/web", ofMain, map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature": "sha1=" + digest(right, ofMain)}),
		"an application that there is not":   push("/hooks/git/shop/none", ofMain, gitHub(right, ofMain)),
		"a namespace that there is not":      push("/hooks/git/none/web", ofMain, gitHub(right, ofMain)),
		"one without a secret":               push("/hooks/git/shop/bare", ofMain, gitHub("", ofMain)),
		"one without a secret, and no token": push("/hooks/git/shop/bare", ofMain, map[string]string{"X-Gitlab-Event": "Push Hook"}),
		"no name":                            push("/hooks/git/shop", ofMain, gitHub(right, ofMain)),
		"a name that none has":               push("/hooks/git/shop/web/more", ofMain, gitHub(right, ofMain)),
		"another event":                      push("/hooks/git/shop/web", ofMain, map[string]string{"X-GitHub-Event": "ping"}),
	} {
		t.Run(name, func(t *testing.T) {
			apps := shop()
			if got := said(answer(newHandler(apps), request)); got != want || len(apps.announced) > 0 {
				t.Errorf("it is answered by %s, want %s; announced to %v", got, want, apps.announced)
			}
		})
	}
}

func TestWhatIsNotHeard(t *testing.T) {
	huge := bytes.Repeat([]byte(" "), mostBody+1)
	for name, test := range map[string]struct {
		change  func(*known)
		request *http.Request
		want    int
	}{
		"another path is somebody else's": {request: push("/hooks", ofMain, nil), want: http.StatusTeapot},
		"a GET":                           {request: httptest.NewRequest(http.MethodGet, "/hooks/git/shop/web", nil), want: http.StatusMethodNotAllowed},
		"a huge body":                     {request: push("/hooks/git/shop/web", string(huge), gitHub(right, string(huge))), want: http.StatusRequestEntityTooLarge},
		"a huge body for nobody":          {request: push("/hooks/git/shop/none", string(huge), nil), want: http.StatusRequestEntityTooLarge},
		"anything while the applications are not known": {
			change: func(k *known) { k.filling = true }, request: push("/hooks/git/shop/web", ofMain, gitHub(right, ofMain)), want: http.StatusServiceUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			apps := shop()
			if test.change != nil {
				test.change(apps)
			}
			if got := answer(newHandler(apps), test.request); got.StatusCode != test.want || len(apps.announced) > 0 {
				t.Errorf("%s, announced to %v; want %d", got.Status, apps.announced, test.want)
			}
		})
	}
}

func TestWhoGuessesIsNotHeardForAWhileAndOthersAre(t *testing.T) {
	apps, clock := shop(), clocktesting.NewFakePassiveClock(time.Now())
	h := New(apps, clock, nil)
	from := func(address, secret string) int {
		request := push("/hooks/git/shop/web", ofMain, gitHub(secret, ofMain))
		request.RemoteAddr = address
		return answer(h, request).StatusCode
	}
	for i := range mostWrong {
		if got := from(fmt.Sprintf("192.0.2.1:%d", 1000+i), "wrong"); got != http.StatusUnauthorized {
			t.Fatalf("guess %d is answered by %d", i, got)
		}
	}
	for _, test := range []struct {
		what, address, secret string
		after                 time.Duration
		want                  int
	}{
		{"one more guess", "192.0.2.1:7", "wrong", 0, http.StatusTooManyRequests},
		{"the right one by the same address", "192.0.2.1:8", right, 0, http.StatusTooManyRequests},
		{"the right one by another address", "192.0.2.2:7", right, 0, http.StatusAccepted},
		{"a guess after a while", "192.0.2.1:9", "wrong", wrongEvery, http.StatusUnauthorized},
		{"and a second one", "192.0.2.1:10", "wrong", 0, http.StatusTooManyRequests},
	} {
		clock.SetTime(clock.Now().Add(test.after))
		if got := from(test.address, test.secret); got != test.want {
			t.Errorf("%s is answered by %d, want %d", test.what, got, test.want)
		}
	}
}

// slow is a body that tells when it is read, and ends when it is closed.
type slow struct {
	*io.PipeReader
	reading chan struct{}
}

func (s slow) Read(p []byte) (int, error) {
	s.reading <- struct{}{}
	return s.PipeReader.Read(p)
}

func TestSlowBodiesHoldUpABoundedNumber(t *testing.T) {
	h := newHandler(shop())
	var writers []*io.PipeWriter
	var requests sync.WaitGroup
	sendSlowly := func(address string, number int) {
		reading := make(chan struct{}, number)
		for range number {
			reader, writer := io.Pipe()
			writers = append(writers, writer)
			request := httptest.NewRequest(http.MethodPost, "/hooks/git/shop/web", slow{reader, reading})
			request.RemoteAddr = address + ":1234"
			requests.Go(func() { answer(h, request) })
		}
		for range number {
			<-reading
		}
	}
	from := func(address string) *http.Response {
		request := push("/hooks/git/shop/web", ofMain, gitHub(right, ofMain))
		request.RemoteAddr = address + ":1234"
		return answer(h, request)
	}
	sendSlowly("192.0.2.1", mostOfOne)
	if got := from("192.0.2.1"); got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
		t.Errorf("one more of the same address is answered by %s", got.Status)
	}
	if got := from("192.0.2.2"); got.StatusCode != http.StatusAccepted {
		t.Errorf("one address that sends slowly keeps another one out: %s", got.Status)
	}
	sendSlowly("192.0.2.3", mostAtOnce-mostOfOne)
	if got := from("192.0.2.2"); got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
		t.Errorf("one more than all is answered by %s", got.Status)
	}
	for _, writer := range writers {
		writer.CloseWithError(io.ErrUnexpectedEOF)
	}
	requests.Wait()
	if got := from("192.0.2.1"); got.StatusCode != http.StatusAccepted {
		t.Errorf("once they have ended one is answered by %s", got.Status)
	}
}

func TestWhichPushesAreNews(t *testing.T) {
	read := func(ref string) *v1alpha1.Application {
		app := following(nil)
		app.Status.Source = &v1alpha1.SourceStatus{Origin: &v1alpha1.Origin{URL: app.Spec.Source.Git.URL, Ref: ref}}
		return app
	}
	moved := read("refs/heads/main")
	moved.Spec.Source.Git.URL = "https://git.example/other.git"
	for name, test := range map[string]struct {
		app  *v1alpha1.Application
		ref  string
		want bool
	}{
		"the branch":                      {following(&v1alpha1.GitRef{Branch: "main"}), "refs/heads/main", true},
		"another branch":                  {following(&v1alpha1.GitRef{Branch: "main"}), "refs/heads/main2", false},
		"a tag of the name of the branch": {following(&v1alpha1.GitRef{Branch: "main"}), "refs/tags/main", false},
		"the tag":                         {following(&v1alpha1.GitRef{Tag: "live"}), "refs/tags/live", true},
		"another tag":                     {following(&v1alpha1.GitRef{Tag: "live"}), "refs/tags/v1", false},
		"any tag, of versions":            {following(&v1alpha1.GitRef{Semver: ">=1.0.0"}), "refs/tags/v1", true},
		"a branch, of versions":           {following(&v1alpha1.GitRef{Semver: ">=1.0.0"}), "refs/heads/main", false},
		"anything, of a commit":           {following(&v1alpha1.GitRef{Commit: strings.Repeat("a", 40)}), "refs/heads/main", false},
		"the default branch":              {read("refs/heads/main"), "refs/heads/main", true},
		"another one":                     {read("refs/heads/main"), "refs/heads/other", false},
		"any, while it is not known":      {following(&v1alpha1.GitRef{}), "refs/heads/other", true},
		"any, of another repository":      {moved, "refs/heads/other", true},
		"any, where it has no name":       {read("HEAD"), "refs/heads/other", true},
		"a tag, of the default branch":    {read("refs/heads/main"), "refs/tags/v1", false},
		"nothing":                         {following(nil), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := follows(test.app, test.ref); got != test.want {
				t.Errorf("a push to %q is news: %t, want %t", test.ref, got, test.want)
			}
		})
	}
}

// What comes is a stranger's, until it is shown that it is not.
func FuzzPush(f *testing.F) {
	f.Add("push", "", "sha256=00", []byte(ofMain))
	f.Add("", "repo:push", "", []byte(`{"push":{"changes":[{}]}}`))
	f.Fuzz(func(t *testing.T, event, key, signature string, body []byte) {
		apps := shop()
		r := push("/hooks/git/shop/web", string(body), nil)
		r.Header = http.Header{"X-Github-Event": {event}, "X-Event-Key": {key}, headerGitHub: {signature}, headerBitbucket: {signature}, headerGitLab: {signature}}
		got := answer(newHandler(apps), r)
		if got.StatusCode != http.StatusUnauthorized && got.StatusCode != http.StatusRequestEntityTooLarge && !strings.Contains(signature, right) && signature != "sha256="+digest(right, string(body)) {
			t.Errorf("it is answered by %s", got.Status)
		}
		_, _ = refsOf(r.Header, body)
	})
}
