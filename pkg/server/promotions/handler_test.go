package promotions

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const key = "s3cret"

// known is a pipeline, what looking at it does, and what was asked for.
type known struct {
	mu       sync.Mutex
	pipeline *weave.Pipeline
	err      error
	looked   int
	onLook   func(p *weave.Pipeline, look int)
	asked    []string
}

func (*known) HasSynced() bool { return true }

func (k *known) Find(_ context.Context, name cache.ObjectName) (*weave.Pipeline, error) {
	if k.err != nil || name.String() != "shop/web" {
		return nil, k.err
	}
	return k.pipeline, nil
}

func (*known) SigningKey(_ *weave.Pipeline, secret string) []byte {
	return map[string][]byte{"hook": []byte(key), "other": []byte("of another")}[secret]
}

func (k *known) Look(context.Context, *weave.Pipeline) (*weave.Pipeline, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked++
	if k.onLook != nil {
		k.onLook(k.pipeline, k.looked)
	}
	return k.pipeline, nil
}

func (k *known) Ask(_ context.Context, p *weave.Pipeline, environment, revision, _ string) (bool, error) {
	s := p.Status.Environments[environment]
	if s == nil || s.WaitingStatus == nil || s.WaitingStatus.Revision != revision {
		return false, nil
	}
	k.asked = append(k.asked, environment+"="+revision)
	s.WaitingStatus, s.Promotion = nil, &weave.PromotionStatus{Revision: revision, Phase: weave.PromotionStarted, By: "ci"}
	return true, nil
}

// shop has a pipeline over dev, staging and prod, in which 2 waits for prod. Its calls are signed by the Secret hook.
func shop() *known {
	p := &weave.Pipeline{TypeMeta: metav1.TypeMeta{APIVersion: "pipelines.weave.works/v1alpha1", Kind: "Pipeline"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	p.Spec.AppRef = &weave.AppReference{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Name: "web"}
	for _, name := range []string{"dev", "staging", "prod"} {
		p.Spec.Environments = append(p.Spec.Environments, weave.Environment{Name: name, Targets: []weave.Target{{Namespace: name + "-eu"}, {Namespace: name + "-us"}}})
	}
	p.Spec.Promotion = &weave.Promotion{Strategy: weave.Strategy{Notification: &weave.Notification{}, SecretRef: &weave.SecretReference{Name: "hook"}}}
	p.Status.Environments = map[string]*weave.EnvironmentStatus{"dev": {}, "staging": {}, "prod": {WaitingStatus: &weave.WaitingStatus{Revision: "2"}}}
	return &known{pipeline: p}
}

const ofDev = `{"involvedObject":{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","name":"web","namespace":"dev-us"},"metadata":{"revision":"2"},"reason":"info"}`

func sign(algorithm func() hash.Hash, name, key, body string) string {
	mac := hmac.New(algorithm, []byte(key))
	mac.Write([]byte(body))
	return name + "=" + hex.EncodeToString(mac.Sum(nil))
}

func right(body string) string { return sign(sha256.New, "sha256", key, body) }

// post calls a server as CI does.
func post(t *testing.T, k *known, clock clock.Clock, path, body, signature string) *http.Response {
	t.Helper()
	server := httptest.NewServer(New(k, clock))
	defer server.Close()
	return send(t, server, http.MethodPost, path, strings.NewReader(body), signature)
}

func send(t *testing.T, server *httptest.Server, method, path string, body io.Reader, signature string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if signature != "" {
		request.Header.Set("X-Signature", signature)
	}
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response
}

func TestWhatCallsAreAnswered(t *testing.T) {
	is := func(phase weave.PromotionPhase, revision, url string) func(*known) {
		return func(k *known) {
			k.pipeline.Status.Environments["staging"].Promotion = &weave.PromotionStatus{Revision: revision, Phase: phase, URL: url}
		}
	}
	for name, test := range map[string]struct {
		path, body, signature string
		change                func(*known)
		want                  int
		location              string
		looked                int
		asked                 string
	}{
		"a promotion":                               {path: "/promotion/shop/web/dev", body: ofDev, signature: right(ofDev), want: 204, looked: 1},
		"one that was carried out":                  {path: "/promotion/shop/web/dev", body: ofDev, signature: right(ofDev), change: is(weave.PromotionStarted, "2", ""), want: 204, looked: 1},
		"by a pull request":                         {path: "/promotion/shop/web/dev", body: ofDev, signature: right(ofDev), change: is(weave.PromotionStarted, "2", "https://forge/1"), want: 201, location: "https://forge/1", looked: 1},
		"of another version, which tells nothing":   {path: "/promotion/shop/web/dev", body: ofDev, signature: right(ofDev), change: is(weave.PromotionStarted, "3", "https://forge/1"), want: 204, looked: 1},
		"no signature":                              {path: "/promotion/shop/web/dev", body: ofDev, want: 401},
		"the signature of another body":             {path: "/promotion/shop/web/dev", body: ofDev + " ", signature: right(ofDev), want: 401},
		"by another key":                            {path: "/promotion/shop/web/dev", body: ofDev, signature: sign(sha256.New, "sha256", "wrong", ofDev), want: 401},
		"by an empty key":                           {path: "/promotion/shop/web/dev", body: ofDev, signature: sign(sha256.New, "sha256", "", ofDev), change: func(k *known) { k.pipeline.Spec.Promotion.Strategy.SecretRef.Name = "missing" }, want: 401},
		"cut short":                                 {path: "/promotion/shop/web/dev", body: ofDev, signature: right(ofDev)[:20], want: 401},
		"by an algorithm that there is not":         {path: "/promotion/shop/web/dev", body: ofDev, signature: strings.Replace(right(ofDev), "sha256", "sha1", 1), want: 401},
		"without a Secret it need not be signed":    {path: "/promotion/shop/web/dev", body: ofDev, change: func(k *known) { k.pipeline.Spec.Promotion.Strategy.SecretRef = nil }, want: 204, looked: 1},
		"the environment's own Secret counts":       {path: "/promotion/shop/web/dev", body: ofDev, signature: right(ofDev), change: ownSecret, want: 401},
		"and signs":                                 {path: "/promotion/shop/web/dev", body: ofDev, signature: sign(sha256.New, "sha256", "of another", ofDev), change: ownSecret, want: 204, looked: 1},
		"one without does not leave out the first":  {path: "/promotion/shop/web/dev", body: ofDev, change: func(k *known) { k.pipeline.Spec.Environments[1].Promotion = &weave.Promotion{} }, want: 401},
		"a pipeline that there is not":              {path: "/promotion/shop/none/dev", body: ofDev, signature: right(ofDev), want: 404},
		"a path that there is not":                  {path: "/promotions/shop/web/dev", body: ofDev, signature: right(ofDev), want: 404},
		"too short a path":                          {path: "/promotion/shop/web", body: ofDev, signature: right(ofDev), want: 404},
		"too long a path":                           {path: "/promotion/shop/web/dev/more", body: ofDev, signature: right(ofDev), want: 404},
		"a name that none has":                      {path: "/promotion/SHOP/web/dev", body: ofDev, signature: right(ofDev), want: 404},
		"an environment that there is not":          {path: "/promotion/shop/web/test", body: ofDev, signature: right(ofDev), want: 422},
		"the last environment":                      {path: "/promotion/shop/web/prod", body: ofDev, signature: right(ofDev), want: 422},
		"an object of another environment":          {path: "/promotion/shop/web/staging", body: ofDev, signature: right(ofDev), want: 422},
		"another object":                            bodyOf(strings.Replace(ofDev, `"web"`, `"api"`, 1), 422),
		"another kind":                              bodyOf(strings.Replace(ofDev, "HelmRelease", "Kustomization", 1), 422),
		"another version of the kind":               bodyOf(strings.Replace(ofDev, "fluxcd.io/v2", "fluxcd.io/v1", 1), 422),
		"no revision":                               bodyOf(strings.Replace(ofDev, "revision", "summary", 1), 422),
		"no event":                                  bodyOf("payload=x", 422),
		"nothing":                                   bodyOf("", 422),
		"nothing is promoted there":                 {path: "/promotion/shop/web/dev", body: ofDev, change: func(k *known) { k.pipeline.Spec.Promotion = nil }, want: 422},
		"the server cannot read":                    {path: "/promotion/shop/web/dev", body: ofDev, signature: right(ofDev), change: func(k *known) { k.err = errors.New("not now") }, want: 500},
		"an approval":                               {path: "/approval/shop/web/prod/2", signature: right(""), want: 204, looked: 1, asked: "prod=2"},
		"of what does not wait":                     {path: "/approval/shop/web/prod/3", signature: right(""), want: 422},
		"of what waits elsewhere":                   {path: "/approval/shop/web/staging/2", signature: right(""), want: 422},
		"in an environment that there is not":       {path: "/approval/shop/web/test/2", signature: right(""), want: 422},
		"without a signature":                       {path: "/approval/shop/web/prod/2", want: 401},
		"without a Secret an approval is refused":   {path: "/approval/shop/web/prod/2", change: func(k *known) { k.pipeline.Spec.Promotion.Strategy.SecretRef = nil }, want: 401},
		"even one signed by an empty key":           {path: "/approval/shop/web/prod/2", signature: sign(sha256.New, "sha256", "", ""), change: func(k *known) { k.pipeline.Spec.Promotion.Strategy.SecretRef = nil }, want: 401},
		"of a revision with a slash":                {path: "/approval/shop/web/prod/main/0123", signature: right(""), change: waits("main/0123"), want: 204, looked: 1, asked: "prod=main/0123"},
		"of one that is written as it is in a path": {path: "/approval/shop/web/prod/main%40sha1%3A0123", signature: right(""), change: waits("main@sha1:0123"), want: 204, looked: 1, asked: "prod=main@sha1:0123"},
		"of no revision":                            {path: "/approval/shop/web/prod/", signature: right(""), want: 404},
		"of a pipeline that there is not":           {path: "/approval/shop/none/prod/2", signature: right(""), want: 404},
	} {
		t.Run(name, func(t *testing.T) {
			k := shop()
			if test.change != nil {
				test.change(k)
			}
			got := post(t, k, clock.RealClock{}, test.path, test.body, test.signature)
			if got.StatusCode != test.want || got.Header.Get("Location") != test.location {
				t.Errorf("it is %s to %q, want %d to %q", got.Status, got.Header.Get("Location"), test.want, test.location)
			}
			if k.looked != test.looked || strings.Join(k.asked, " ") != test.asked {
				t.Errorf("looked at %d times, asked for %v; want %d and %q", k.looked, k.asked, test.looked, test.asked)
			}
		})
	}
}

type row = struct {
	path, body, signature string
	change                func(*known)
	want                  int
	location              string
	looked                int
	asked                 string
}

// bodyOf is a call with a body that is signed.
func bodyOf(body string, want int) row {
	return row{path: "/promotion/shop/web/dev", body: body, signature: right(body), want: want}
}

func ownSecret(k *known) {
	k.pipeline.Spec.Environments[1].Promotion = &weave.Promotion{Strategy: weave.Strategy{SecretRef: &weave.SecretReference{Name: "other"}}}
}

func waits(revision string) func(*known) {
	return func(k *known) { k.pipeline.Status.Environments["prod"].WaitingStatus.Revision = revision }
}

func TestEveryAlgorithmSigns(t *testing.T) {
	for name, algorithm := range map[string]func() hash.Hash{"sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New} {
		if got := post(t, shop(), clock.RealClock{}, "/promotion/shop/web/dev", ofDev, sign(algorithm, name, key, ofDev)); got.StatusCode != http.StatusNoContent {
			t.Errorf("%s is answered by %s", name, got.Status)
		}
	}
}

func TestOnlyPostIsAnswered(t *testing.T) {
	server := httptest.NewServer(New(shop(), clock.RealClock{}))
	defer server.Close()
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		if got := send(t, server, method, "/promotion/shop/web/dev", nil, ""); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "POST" {
			t.Errorf("%s is answered by %s", method, got.Status)
		}
	}
}

func TestAReplayedApprovalAsksForNothingMore(t *testing.T) {
	k := shop()
	for range 3 {
		if got := post(t, k, clock.RealClock{}, "/approval/shop/web/prod/2", "", right("")); got.StatusCode != http.StatusNoContent {
			t.Errorf("it is answered by %s", got.Status)
		}
	}
	if len(k.asked) != 1 {
		t.Errorf("asked for is %v", k.asked)
	}
	k.pipeline.Status.Environments["prod"].WaitingStatus = &weave.WaitingStatus{Revision: "3"}
	if got := post(t, k, clock.RealClock{}, "/approval/shop/web/prod/2", "", right("")); got.StatusCode != http.StatusUnprocessableEntity || len(k.asked) != 1 {
		t.Errorf("when a newer version waits it is answered by %s, and asked for is %v", got.Status, k.asked)
	}
}

// endless is a body that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

func TestALargeBodyIsRefusedWithoutBeingRead(t *testing.T) {
	for name, length := range map[string]int64{"which says so": 100 << 20, "which does not say so": -1} {
		body := &endless{}
		request := httptest.NewRequest(http.MethodPost, "/promotion/shop/web/dev", body)
		request.ContentLength = length
		k, recorder := shop(), httptest.NewRecorder()
		New(k, clock.RealClock{}).ServeHTTP(recorder, request)
		if recorder.Code != http.StatusRequestEntityTooLarge || body.read > 4*mostBody || length > 0 && body.read > 0 || k.looked > 0 {
			t.Errorf("a body %s is answered by %d after %d bytes", name, recorder.Code, body.read)
		}
	}
}

func TestAnAddressThatCallsTooOftenIsNotHeardForAWhile(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	h := New(shop(), fake)
	from := func(address string) int {
		request := httptest.NewRequest(http.MethodPost, "/promotion/shop/web/dev", strings.NewReader(ofDev))
		request.RemoteAddr = address + ":1234"
		request.Header.Set("X-Forwarded-For", "192.0.2.77") // its own word
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		if recorder.Code == http.StatusTooManyRequests && recorder.Header().Get("Retry-After") == "" {
			t.Error("it is not said when to come again")
		}
		return recorder.Code
	}
	for i := range mostCalls {
		if got := from("192.0.2.1"); got != http.StatusUnauthorized {
			t.Fatalf("call %d is answered by %d", i, got)
		}
	}
	if got := from("192.0.2.1"); got != http.StatusTooManyRequests {
		t.Errorf("one too many is answered by %d", got)
	}
	if got := from("192.0.2.2"); got != http.StatusUnauthorized {
		t.Errorf("another address is answered by %d", got)
	}
	fake.Step(callsIn)
	if got := from("192.0.2.1"); got != http.StatusUnauthorized {
		t.Errorf("later it is answered by %d", got)
	}
}

func TestAPromotionThatFailsIsTriedAgainAndTold(t *testing.T) {
	for name, test := range map[string]struct {
		failing int
		want    int
		looked  int
	}{
		"it is repaired":  {failing: 2, want: http.StatusNoContent, looked: 3},
		"it fails always": {failing: 99, want: http.StatusInternalServerError, looked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			k, fake := shop(), clocktesting.NewFakeClock(time.Now())
			k.onLook = func(p *weave.Pipeline, look int) {
				status := &weave.PromotionStatus{Revision: "2", Phase: weave.PromotionFailed}
				if look > test.failing {
					status.Phase = weave.PromotionStarted
				}
				p.Status.Environments["staging"].Promotion = status
			}
			answered := make(chan int)
			go func() {
				recorder, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/promotion/shop/web/dev", strings.NewReader(ofDev))
				request.Header.Set("X-Signature", right(ofDev))
				New(k, fake).ServeHTTP(recorder, request)
				answered <- recorder.Code
			}()
			for {
				select {
				case got := <-answered:
					if got != test.want || k.looked != test.looked {
						t.Errorf("it is answered by %d after %d tries, want %d after %d", got, k.looked, test.want, test.looked)
					}
					return
				default:
					if fake.HasWaiters() {
						fake.Step(20 * time.Second)
					}
				}
			}
		})
	}
}

func FuzzSignature(f *testing.F) {
	f.Add(right(ofDev), ofDev)
	f.Add("sha256=", "")
	f.Add("=", "x")
	f.Fuzz(func(t *testing.T, signature, body string) {
		if signed(signature, []byte(body), []byte(key)) {
			name, _, _ := strings.Cut(signature, "=")
			if !strings.EqualFold(signature, sign(algorithms[name], name, key, body)) {
				t.Errorf("%q signs %q", signature, body)
			}
		}
	})
}
