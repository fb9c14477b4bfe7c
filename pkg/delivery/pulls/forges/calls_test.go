package forges

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// pathOf is where a repository of a type of forge is.
func pathOf(kind string) string {
	switch kind {
	case weave.ForgeBitbucketServer:
		return "/scm/SHOP/fleet"
	case weave.ForgeAzureDevOps:
		return "/acme/shop/_git/fleet"
	}
	return "/acme/fleet"
}

// served is a forge that a handler answers for.
func served(t *testing.T, kind string, answer http.HandlerFunc) *Forge {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	forge, err := New(Repository{
		Forge: kind, URL: server.URL + pathOf(kind), Token: "s3cret-token", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}, outbound.Policy{Allow: func(net.IP) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	return forge
}

// calls are all that a forge is asked.
func calls(t *testing.T, f *Forge) map[string]error {
	t.Helper()
	_, list := f.List(t.Context(), "main")
	_, find := f.Find(t.Context(), 4)
	_, create := f.Create(t.Context(), Input{Title: "a", Branch: "b", Base: "c"})
	return map[string]error{"list": list, "find": find, "create": create, "close": f.Close(t.Context(), 4, "why")}
}

// open is an open pull request as a forge tells of it.
func open(kind string) string {
	switch kind {
	case weave.ForgeGitLab:
		return `{"iid": 4, "state": "opened", "source_branch": "b", "target_branch": "main", "source_project_id": 7, "target_project_id": 7}`
	case weave.ForgeBitbucketServer:
		return `{"id": 4, "version": 9, "state": "OPEN", "fromRef": {"id": "refs/heads/b", "repository": {"slug": "fleet", "project": {"key": "SHOP"}}}, "toRef": {"id": "refs/heads/main", "repository": {"slug": "fleet", "project": {"key": "SHOP"}}}}`
	case weave.ForgeAzureDevOps:
		return `{"pullRequestId": 4, "status": "active", "sourceRefName": "refs/heads/b", "targetRefName": "refs/heads/main"}`
	}
	return `{"number": 4, "state": "open", "head": {"ref": "b", "repo": {"full_name": "acme/fleet"}}, "base": {"ref": "main", "repo": {"full_name": "acme/fleet"}}}`
}

// TestWhatEachTypeOfForgeIsSent holds the requests to what the references of the forges say of them: the method, the address and the body.
func TestWhatEachTypeOfForgeIsSent(t *testing.T) {
	for kind, want := range map[string][]string{
		weave.ForgeGitHub: {
			`GET /api/v3/repos/acme/fleet/pulls?base=main&direction=desc&page=1&per_page=50&sort=created&state=all`,
			`GET /api/v3/repos/acme/fleet/pulls/4`,
			`POST /api/v3/repos/acme/fleet/pulls {"base":"main","body":"Because.","head":"promotion/x","title":"Promote web"}`,
			`GET /api/v3/repos/acme/fleet/pulls/4`,
			`PATCH /api/v3/repos/acme/fleet/pulls/4 {"state":"closed"}`,
			`POST /api/v3/repos/acme/fleet/issues/4/comments {"body":"Older."}`,
		},
		weave.ForgeGitea: {
			`GET /api/v1/repos/acme/fleet/pulls?limit=50&page=1&state=all`,
			`GET /api/v1/repos/acme/fleet/pulls/4`,
			`POST /api/v1/repos/acme/fleet/pulls {"base":"main","body":"Because.","head":"promotion/x","title":"Promote web"}`,
			`GET /api/v1/repos/acme/fleet/pulls/4`,
			`PATCH /api/v1/repos/acme/fleet/pulls/4 {"state":"closed"}`,
			`POST /api/v1/repos/acme/fleet/issues/4/comments {"body":"Older."}`,
		},
		weave.ForgeGitLab: {
			`GET /api/v4/projects/acme%2Ffleet/merge_requests?order_by=created_at&page=1&per_page=50&sort=desc&state=all&target_branch=main`,
			`GET /api/v4/projects/acme%2Ffleet/merge_requests/4`,
			`POST /api/v4/projects/acme%2Ffleet/merge_requests {"description":"Because.","source_branch":"promotion/x","target_branch":"main","title":"Promote web"}`,
			`GET /api/v4/projects/acme%2Ffleet/merge_requests/4`,
			`PUT /api/v4/projects/acme%2Ffleet/merge_requests/4 {"state_event":"close"}`,
			`POST /api/v4/projects/acme%2Ffleet/merge_requests/4/notes {"body":"Older."}`,
		},
		weave.ForgeBitbucketServer: {
			`GET /rest/api/1.0/projects/SHOP/repos/fleet/pull-requests?at=refs%2Fheads%2Fmain&limit=50&order=NEWEST&start=0&state=ALL`,
			`GET /rest/api/1.0/projects/SHOP/repos/fleet/pull-requests/4`,
			`POST /rest/api/1.0/projects/SHOP/repos/fleet/pull-requests {"description":"Because.","fromRef":{"id":"refs/heads/promotion/x","repository":{"project":{"key":"SHOP"},"slug":"fleet"}},"title":"Promote web","toRef":{"id":"refs/heads/main","repository":{"project":{"key":"SHOP"},"slug":"fleet"}}}`,
			`GET /rest/api/1.0/projects/SHOP/repos/fleet/pull-requests/4`,
			`POST /rest/api/1.0/projects/SHOP/repos/fleet/pull-requests/4/decline?version=9 {}`,
			`POST /rest/api/1.0/projects/SHOP/repos/fleet/pull-requests/4/comments {"text":"Older."}`,
		},
		weave.ForgeAzureDevOps: {
			`GET /acme/shop/_apis/git/repositories/fleet/pullrequests?%24skip=0&%24top=50&searchCriteria.status=all&searchCriteria.targetRefName=refs%2Fheads%2Fmain&api-version=6.0`,
			`GET /acme/shop/_apis/git/repositories/fleet/pullrequests/4?api-version=6.0`,
			`POST /acme/shop/_apis/git/repositories/fleet/pullrequests?api-version=6.0 {"description":"Because.","sourceRefName":"refs/heads/promotion/x","targetRefName":"refs/heads/main","title":"Promote web"}`,
			`GET /acme/shop/_apis/git/repositories/fleet/pullrequests/4?api-version=6.0`,
			`PATCH /acme/shop/_apis/git/repositories/fleet/pullrequests/4?api-version=6.0 {"status":"abandoned"}`,
			`POST /acme/shop/_apis/git/repositories/fleet/pullrequests/4/threads?api-version=6.0 {"comments":[{"commentType":"text","content":"Older.","parentCommentId":0}],"status":"closed"}`,
		},
	} {
		t.Run(kind, func(t *testing.T) {
			var got []string
			forge := served(t, kind, func(w http.ResponseWriter, r *http.Request) {
				content, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				said := r.Method + " " + r.URL.RequestURI()
				if body := strings.TrimSpace(string(content)); body != "" {
					said += " " + body
					if r.Header.Get("Content-Type") != "application/json" {
						t.Errorf("%s is sent as %q", said, r.Header.Get("Content-Type"))
					}
				}
				got = append(got, said)
				wanted := "Bearer s3cret-token"
				if kind == weave.ForgeAzureDevOps {
					wanted = ""
					if user, password, _ := r.BasicAuth(); user != "" || password != "s3cret-token" {
						t.Errorf("%s is sent as %q with %q", said, user, password)
					}
				}
				if wanted != "" && r.Header.Get("Authorization") != wanted || r.Header.Get("Accept") != "application/json" || r.Header.Get("User-Agent") == "" {
					t.Errorf("%s is sent with %v", said, r.Header)
				}
				listed := map[string]string{weave.ForgeBitbucketServer: `{"values": [%s]}`, weave.ForgeAzureDevOps: `{"value": [%s]}`}[kind]
				if listed == "" {
					listed = "[%s]"
				}
				if len(got) == 1 {
					fmt.Fprintf(w, listed, open(kind))
					return
				}
				_, _ = io.WriteString(w, open(kind))
			})
			pull := Pull{Number: 4, Branch: "b", Base: "main", Own: true}
			if kind == weave.ForgeBitbucketServer {
				pull.version = 9
			}
			if listed, err := forge.List(t.Context(), "main"); err != nil || !slices.Equal(listed, []Pull{pull}) {
				t.Errorf("listed are %+v: %v", listed, err)
			}
			if found, err := forge.Find(t.Context(), 4); err != nil || found != pull {
				t.Errorf("found is %+v: %v", found, err)
			}
			if made, err := forge.Create(t.Context(), Input{Title: "Promote web", Body: "Because.", Branch: "promotion/x", Base: "main"}); err != nil || made != pull {
				t.Errorf("made is %+v: %v", made, err)
			}
			if err := forge.Close(t.Context(), 4, "Older."); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAForgeThatHasHadTooManyCallsSaysForHowLongItIsLeftAlone(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		code   int
		header map[string]string
		// want is how long, 0 if it has not had too many.
		want time.Duration
		is   error
	}{
		"by seconds":                        {code: 429, header: map[string]string{"Retry-After": "30"}, want: 30 * time.Second},
		"by a time":                         {code: 429, header: map[string]string{"Retry-After": now.Add(90 * time.Second).UTC().Format(http.TimeFormat)}, want: 90 * time.Second},
		"by nothing":                        {code: 429, want: time.Minute},
		"by what is no time":                {code: 429, header: map[string]string{"Retry-After": "soon"}, want: time.Minute},
		"for ever, which is not believed":   {code: 429, header: map[string]string{"Retry-After": "99999999999"}, want: time.Hour},
		"since yesterday":                   {code: 429, header: map[string]string{"Retry-After": "-86400"}, want: time.Second},
		"as GitHub does, by the hour's end": {code: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(now.Add(10 * time.Minute).Unix())}, want: 10 * time.Minute},
		"as GitHub does, for too much":      {code: 403, header: map[string]string{"Retry-After": "60"}, want: time.Minute},
		"while it is being repaired":        {code: 503, header: map[string]string{"Retry-After": "120"}, want: 2 * time.Minute},
		"not when it is down":               {code: 503},
		"not when it takes another's token": {code: 403, header: map[string]string{"X-RateLimit-Remaining": "4999"}, is: ErrForbidden},
		"not when it knows nobody":          {code: 401, header: map[string]string{"Retry-After": "60"}, is: ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range kinds {
				forge := served(t, kind, func(w http.ResponseWriter, _ *http.Request) {
					for key, value := range test.header {
						w.Header().Set(key, value)
					}
					http.Error(w, `{"message": "slower"}`, test.code)
				})
				for doing, err := range calls(t, forge) {
					busy := (*BusyError)(nil)
					switch {
					case err == nil || !strings.Contains(err.Error(), "slower"):
						t.Errorf("%s of %s: error %v", doing, kind, err)
					case test.want == 0:
						if errors.As(err, &busy) || test.is != nil && !errors.Is(err, test.is) {
							t.Errorf("%s of %s: error %v, want %v", doing, kind, err, test.is)
						}
					case !errors.As(err, &busy) || errors.Is(err, ErrForbidden):
						t.Errorf("%s of %s: error %v, want that it has had too many calls", doing, kind, err)
					case busy.Pause < test.want-15*time.Second || busy.Pause > test.want:
						t.Errorf("%s of %s: %s, want %s", doing, kind, busy.Pause, test.want)
					}
				}
			}
		})
	}
}

func TestACredentialIsSentToTheForgeAndNowhereElse(t *testing.T) {
	called := 0
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer elsewhere.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		for _, kind := range kinds {
			forge := served(t, kind, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+r.URL.Path, code) })
			for doing, err := range calls(t, forge) {
				if !errors.Is(err, outbound.ErrRefused) || !strings.Contains(err.Error(), "leads to another host") || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%s of %s by %d: error %v, want it refused", doing, kind, code, err)
				}
			}
		}
	}
	if called > 0 {
		t.Errorf("another host was called %d times", called)
	}
}

// A repository that was renamed is led to by the forge itself.
func TestAForgeMayLeadToAnotherAddressOfItsOwn(t *testing.T) {
	forge := served(t, weave.ForgeGitHub, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/renamed") {
			http.Redirect(w, r, "/renamed"+r.URL.Path, http.StatusPermanentRedirect)
			return
		}
		if r.Header.Get("Authorization") != "Bearer s3cret-token" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, open(weave.ForgeGitHub))
	})
	if found, err := forge.Find(t.Context(), 4); err != nil || found.Number != 4 {
		t.Errorf("found is %+v: %v", found, err)
	}
	if made, err := forge.Create(t.Context(), Input{Title: "a", Branch: "b", Base: "main"}); err != nil || made.Number != 4 {
		t.Errorf("made is %+v: %v", made, err)
	}
}

func TestAnAnswerIsReadNoFurtherThanItMayBe(t *testing.T) {
	for _, kind := range kinds {
		var sent atomic.Int64
		forge := served(t, kind, func(w http.ResponseWriter, _ *http.Request) {
			part := bytes.Repeat([]byte(" "), 1<<20)
			for sent.Load() < 4*mostAnswer {
				if _, err := w.Write(part); err != nil {
					return // nobody reads it
				}
				sent.Add(int64(len(part)))
			}
		})
		if _, err := forge.Find(t.Context(), 4); err == nil || sent.Load() >= 4*mostAnswer {
			t.Errorf("%s: error %v after %d bytes", kind, err, sent.Load())
		}
	}
}

// FuzzPulls reads what a forge may answer.
func FuzzPulls(f *testing.F) {
	for _, kind := range kinds {
		f.Add(open(kind))
		f.Add("[" + open(kind) + "]")
	}
	f.Add(`{"values": null}`)
	f.Add(`{"number": 1e400}`)
	f.Fuzz(func(t *testing.T, answer string) {
		for _, driver := range []driver{github{}, gitea{}, gitlab{}, bitbucket{}, azure{}} {
			if one, err := driver.read([]byte(answer)); err != nil && one.Own && !json.Valid([]byte(answer)) {
				t.Errorf("%T takes %q for %+v", driver, answer, one)
			}
			if _, err := driver.readAll([]byte(answer)); err == nil && !json.Valid([]byte(answer)) {
				t.Errorf("%T takes %q for a list", driver, answer)
			}
		}
	})
}
