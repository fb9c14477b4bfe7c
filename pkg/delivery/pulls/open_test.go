package pulls

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/forges/forgetest"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	mark = `# {"$promotion": "default:podinfo:prod"}`
	file = "clusters/prod/podinfo.yaml"
)

// fleet is a repository with a chart in two environments.
func fleet() map[string]string {
	return map[string]string{
		file:                         "spec:\n  version: 6.1.5 " + mark + "\n",
		"clusters/dev/podinfo.yaml":  "spec:\n  version: 6.2.0 # {\"$promotion\": \"default:podinfo:dev\"}\n",
		"clusters/prod/link.yaml":    "-> podinfo.yaml",
		"clusters/prod/outside.yaml": "-> ../../../../etc/passwd",
		"README.md":                  "version: 6.1.5 " + mark + "\n",
	}
}

// promoter is an opener and what it is asked in a test.
type promoter struct {
	*testing.T
	Opener
	forge   *forgetest.Forge
	request Request
}

func newPromoter(t *testing.T, kind string, files map[string]string) *promoter {
	t.Helper()
	forge := forgetest.New(t, kind, files)
	anywhere := func(net.IP) bool { return true }
	repositories, err := git.New(filepath.Join(t.TempDir(), "commits"), git.Policy{Allow: anywhere}, git.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &promoter{
		T: t, Opener: New(repositories, outbound.Policy{Allow: anywhere}, clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))), forge: forge,
		request: Request{
			Forge: kind, URL: forge.CloneURL(), BaseBranch: "main", Credentials: map[string][]byte{KeyToken: []byte(forgetest.Token), KeyAuthority: forge.CA()},
			Pipeline: Pipeline{Group: weave.Group, Namespace: "default", Name: "podinfo"}, Environment: "prod",
			App: App{Kind: "HelmRelease", Name: "podinfo", Namespaces: []string{"podinfo"}}, Version: Version{Revision: "6.2.0"},
		},
	}
}

// promote asks for a version.
func (p *promoter) promote(version string) Result {
	p.Helper()
	request := p.request
	request.Version.Revision = version
	result, err := p.Open(p.Context(), request)
	if err != nil {
		p.Fatalf("promote %s: %v", version, err)
	}
	return result
}

func (p *promoter) expect(got Result, state State, number int) {
	p.Helper()
	if got.State != state || (number == 0) != (got.URL == "") || number > 0 && !strings.HasSuffix(got.URL, "/"+string(rune('0'+number))) {
		p.Fatalf("got %+v, want %s and pull request %d", got, state, number)
	}
	if got.URL != "" && !strings.HasPrefix(got.URL, p.forge.Server.URL+"/") {
		p.Errorf("the address %s leads to another host than the forge", got.URL)
	}
}

// states are those of the pull requests of the forge.
func (p *promoter) states() []string {
	var out []string
	for _, pull := range p.forge.Pulls() {
		out = append(out, pull.State)
	}
	return out
}

func TestPullRequestsOnEachTypeOfForge(t *testing.T) {
	for _, kind := range forgetest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPromoter(t, kind, fleet())
			first := p.promote("6.2.0")
			p.expect(first, Open, 1)
			pull := p.forge.Pulls()[0]
			if pull.Title != "Promote default/podinfo in prod to 6.2.0" || pull.Base != "main" || !strings.HasPrefix(pull.Head, "promotion/default/podinfo/prod/6.2.0-") {
				t.Errorf("the pull request is %+v", pull)
			}
			if !strings.Contains(pull.Body, file+":2: 6.1.5 -> 6.2.0") || !strings.Contains(pull.Body, "default/podinfo/prod\n</details>") {
				t.Errorf("it says %q", pull.Body)
			}
			if got, want := p.forge.File(pull.Head, file), "spec:\n  version: 6.2.0 "+mark+"\n"; got != want {
				t.Errorf("the file is %q, want %q", got, want)
			}
			if got := p.forge.Git("", "diff", "--name-only", "main", pull.Head); got != file {
				t.Errorf("the branch changes %q", got)
			}
			if got := p.forge.Git("", "log", "--format=%an <%ae> %aI %s", "main.."+pull.Head); got != "Manifold <noreply@manifold.dev> 2026-01-02T03:04:05+00:00 "+pull.Title &&
				got != "Manifold <noreply@manifold.dev> 2026-01-02T03:04:05Z "+pull.Title {
				t.Errorf("the commits are %q", got)
			}

			p.expect(p.promote("6.2.0"), Open, 1) // a second time nothing is done
			second := p.promote("6.3.0")
			p.expect(second, Open, 2)
			older := p.forge.Pulls()[0]
			if older.State != "closed" || len(older.Comments) != 1 || !strings.Contains(older.Comments[0], second.URL) {
				t.Errorf("the older pull request is %+v", older)
			}
			p.forge.Merge(2)
			p.expect(p.promote("6.3.0"), Merged, 2)
			if got := p.forge.File("main", file); !strings.Contains(got, "6.3.0") {
				t.Errorf("main has %q", got)
			}
			p.expect(p.promote("6.4.0"), Open, 3)
			p.forge.Decline(3)
			p.expect(p.promote("6.4.0"), Closed, 3)
			if got := p.states(); !slices.Equal(got, []string{"closed", "merged", "closed"}) {
				t.Errorf("the pull requests are %v", got)
			}
		})
	}
}

func TestAVersionThatIsThereNeedsNoPullRequestAndClosesOthers(t *testing.T) {
	p := newPromoter(t, weave.ForgeGitHub, fleet())
	p.expect(p.promote("6.2.0"), Open, 1)
	p.forge.Commit("main", map[string]string{file: "version: 6.3.0 " + mark})
	p.expect(p.promote("6.3.0"), NothingToDo, 0)
	if pull := p.forge.Pulls()[0]; pull.State != "closed" || len(pull.Comments) != 1 {
		t.Errorf("the older pull request is %+v", pull)
	}
	if got := p.forge.Branches(); len(got) != 2 {
		t.Errorf("the branches are %v", got)
	}
}

func TestAVersionThatComesBackIsPromotedAnew(t *testing.T) {
	p := newPromoter(t, weave.ForgeGitLab, fleet())
	p.expect(p.promote("6.2.0"), Open, 1)
	p.forge.Merge(1)
	p.expect(p.promote("6.3.0"), Open, 2)
	p.forge.Merge(2)
	p.expect(p.promote("6.2.0"), Open, 3)
	p.expect(p.promote("6.2.0"), Open, 3)
	if got := p.forge.File(p.forge.Pulls()[2].Head, file); !strings.Contains(got, "6.2.0") {
		t.Errorf("the branch has %q", got)
	}
	p.forge.Decline(3)
	p.expect(p.promote("6.2.0"), Closed, 3)
	p.forge.Reopen(3)
	p.expect(p.promote("6.2.0"), Open, 3)
	p.forge.Merge(3)
	if got := p.forge.File("main", file); !strings.Contains(got, "6.2.0") {
		t.Errorf("main has %q", got)
	}
	p.expect(p.promote("6.2.0"), Merged, 3)
}

func TestTwoWhoPromoteDifferentVersionsDoNotGoOnForEver(t *testing.T) {
	p := newPromoter(t, weave.ForgeGitea, fleet())
	for range 2 * mostAttempts {
		p.promote("6.2.0")
		p.promote("6.3.0")
	}
	if got := len(p.forge.Pulls()); got > 2*mostAttempts {
		t.Errorf("%d pull requests were opened", got)
	}
	if got := p.promote("6.2.0"); got.State != Closed || !strings.Contains(got.Message, "another pipeline") {
		t.Errorf("got %+v", got)
	}
}

func TestWhatWasPushedBeforeIsGoneOnWith(t *testing.T) {
	p := newPromoter(t, weave.ForgeGitHub, fleet())
	p.forge.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			http.Error(w, `{"message": "try later"}`, http.StatusServiceUnavailable)
		}
		return r.Method == http.MethodPost
	}
	_, err := p.Open(t.Context(), p.request)
	if err == nil || Permanent(err) || !strings.Contains(err.Error(), "try later") {
		t.Fatalf("error %v, want one that passes", err)
	}
	branch := p.forge.Branches()[1]
	p.forge.Commit(branch, map[string]string{"notes.md": "by hand"})
	p.forge.Commit("main", map[string]string{"clusters/prod/new.yaml": "v: 1 " + mark})
	tip := p.forge.Git("", "rev-parse", branch)
	p.forge.Refuse = nil
	p.expect(p.promote("6.2.0"), Open, 1)
	if got := p.forge.Git("", "rev-parse", branch); got != tip {
		t.Errorf("the branch was changed, though it had the version")
	}

	p = newPromoter(t, weave.ForgeGitHub, fleet())
	branch = namesOf(p.request).branch
	p.forge.Git("", "branch", branch, "main")
	p.forge.Commit(branch, map[string]string{"notes.md": "by hand"})
	p.expect(p.promote("6.2.0"), Open, 1)
	if p.forge.File(branch, "notes.md") == "" || !strings.Contains(p.forge.File(branch, file), "6.2.0") {
		t.Error("the branch has lost what was there, or lacks the version")
	}
}

func TestAnOlderPullRequestThatCannotBeClosedIsToldAndClosedLater(t *testing.T) {
	p := newPromoter(t, weave.ForgeGitHub, fleet())
	p.expect(p.promote("6.2.0"), Open, 1)
	p.forge.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			http.Error(w, `{"message": "not by you"}`, http.StatusForbidden)
		}
		return r.Method == http.MethodPatch
	}
	p.request.Version.Revision = "6.3.0"
	for range 2 {
		if result, err := p.Open(t.Context(), p.request); !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "/pull/1") || result != (Result{}) {
			t.Errorf("got %+v and error %v, want %v", result, err, ErrForbidden)
		}
	}
	if got := p.forge.Pulls(); len(got) != 2 || len(got[0].Comments) > 0 {
		t.Errorf("the pull requests are %+v", got)
	}
	p.forge.Refuse = nil
	p.expect(p.promote("6.3.0"), Open, 2)
	if got := p.forge.Pulls()[0]; got.State != "closed" || len(got.Comments) != 1 {
		t.Errorf("the older pull request is %+v", got)
	}
}

func TestStrangersPullRequestsAreNotTakenForOurs(t *testing.T) {
	for _, kind := range forgetest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPromoter(t, kind, fleet())
			branch := namesOf(p.request).branch
			p.forge.Open(forgetest.Pull{Title: "mine", Head: branch, Base: "main", Fork: true})
			p.forge.Open(forgetest.Pull{Title: "mine", Head: strings.Replace(branch, "6.2.0", "6.1.9", 1), Base: "main", Fork: true})
			p.forge.Open(forgetest.Pull{Title: "elsewhere", Head: "promotion/default/podinfo/prod/x", Base: "release"})
			p.expect(p.promote("6.2.0"), Open, 4)
			if got := p.states(); !slices.Equal(got, []string{"open", "open", "open", "open"}) {
				t.Errorf("the pull requests are %v", got)
			}
			request := p.request
			request.Known = p.forge.Server.URL + "/acme/fleet/pull/1"
			result, err := p.Open(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			p.expect(result, Open, 4)
		})
	}
}

func TestAKnownPullRequestIsLookedAtAndNothingElse(t *testing.T) {
	for _, kind := range forgetest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPromoter(t, kind, fleet())
			p.request.Known = p.promote("6.2.0").URL
			p.forge.Requests()
			p.expect(p.promote("6.2.0"), Open, 1)
			p.forge.Merge(1)
			p.expect(p.promote("6.2.0"), Merged, 1)
			if got := p.forge.Requests(); len(got) != 2 {
				t.Errorf("the forge was asked %q", got)
			}
			p.request.Known = "https://elsewhere.example.com/acme/fleet/pull/1"
			p.expect(p.promote("6.2.0"), Merged, 1)
		})
	}
}

func TestManyPullRequestsOfOthersAreLookedThrough(t *testing.T) {
	for _, kind := range forgetest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPromoter(t, kind, fleet())
			p.promote("6.2.0")
			p.forge.Decline(1)
			for range 120 {
				p.forge.Open(forgetest.Pull{Title: "other", Head: "other", Base: "main"})
			}
			if got := p.promote("6.2.0"); got.State != Closed {
				t.Errorf("got %+v", got)
			}
			if got := p.forge.Requests(); len(got) > 7 {
				t.Errorf("the forge was asked %d times", len(got))
			}
		})
	}
}

func TestWhatIsRefusedIsToldAndNothingIsDone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*promoter)
		is     error
		says   string
	}{
		"no token":                     {func(p *promoter) { delete(p.request.Credentials, KeyToken) }, ErrRefused, "token"},
		"a wrong token":                {func(p *promoter) { p.request.Credentials[KeyToken] = []byte("s3cret-that-is-wrong") }, ErrForbidden, "who are you?"},
		"a wrong password":             {func(p *promoter) { p.request.Credentials[KeyPassword] = []byte("s3cret-that-is-wrong") }, ErrForbidden, "credentials"},
		"a forge that says the secret": {func(p *promoter) { p.forge.Refuse = saying(forgetest.Token) }, ErrForbidden, "..."},
		"another type":                 {func(p *promoter) { p.request.Forge = "sourceforge" }, ErrRefused, "type"},
		"no https":                     {func(p *promoter) { p.request.URL = strings.Replace(p.request.URL, "https", "http", 1) }, ErrRefused, "http"},
		"a file":                       {func(p *promoter) { p.request.URL = "file:///acme/fleet" }, ErrRefused, "url"},
		"credentials in the URL":       {func(p *promoter) { p.request.URL = strings.Replace(p.request.URL, "://", "://a:s3cret@", 1) }, ErrRefused, "Secret"},
		"no base branch":               {func(p *promoter) { p.request.BaseBranch = "" }, ErrRefused, "baseBranch"},
		"a base branch that is not":    {func(p *promoter) { p.request.BaseBranch = "trunk" }, ErrMissing, "trunk"},
		"no version":                   {func(p *promoter) { p.request.Version = Version{} }, ErrRefused, "version"},
		"a version that is none":       {func(p *promoter) { p.request.Version.Revision = "1 # x" }, ErrRefused, "version"},
		"no marker":                    {func(p *promoter) { p.request.Environment = "staging" }, ErrMissing, `{"$promotion": "default:podinfo:staging"}`},
		"a marker behind nothing":      {func(p *promoter) { p.forge.Commit("main", map[string]string{"a.yaml": "a: 1\n" + mark + "\nb: 2"}) }, ErrAmbiguous, "a.yaml:2"},
		"a marker outside of the path": {func(p *promoter) { p.request.Path = "apps" }, ErrMissing, `"apps"`},
		"a path that leaves":           {func(p *promoter) { p.request.Path = "../../etc" }, ErrMissing, "etc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPromoter(t, weave.ForgeGitHub, fleet())
			test.change(p)
			result, err := p.Open(t.Context(), p.request)
			if !errors.Is(err, test.is) || !Permanent(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %v that says %q", err, test.is, test.says)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), forgetest.Token)) {
				t.Errorf("error %q shows a secret", err)
			}
			if result != (Result{}) || len(p.forge.Pulls()) > 0 || len(p.forge.Branches()) > 1 {
				t.Errorf("it is done half way: %+v, %v", result, p.forge.Branches())
			}
		})
	}
}

// saying refuses with words.
func saying(said string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, `{"message": "not with `+said+`"}`, http.StatusForbidden)
		return true
	}
}

func TestARefusalOfTheContentNamesTheCommitThatItIsOf(t *testing.T) {
	p := newPromoter(t, weave.ForgeGitHub, fleet())
	p.request.Environment = "staging" // which no marker names
	for range 2 {
		_, err := p.Open(t.Context(), p.request)
		base, asked := p.Base(t.Context(), p.request)
		if want := p.forge.Git("", "rev-parse", "main"); asked != nil || base != want || At(err) != want || !errors.Is(err, ErrMissing) {
			t.Errorf("error %v is of %q, and the base branch at %q (%v), want %q", err, At(err), base, asked, want)
		}
		p.forge.Commit("main", map[string]string{"other.yaml": "{}"})
	}
	p.request.Credentials = map[string][]byte{KeyAuthority: p.request.Credentials[KeyAuthority], KeyToken: []byte("another")}
	if _, err := p.Open(t.Context(), p.request); !errors.Is(err, ErrForbidden) || At(err) != "" {
		t.Errorf("error %v is of %q, which is no matter of the content", err, At(err))
	}
	if _, err := p.Base(t.Context(), p.request); !errors.Is(err, ErrForbidden) {
		t.Errorf("the base branch is shown to whom the repository refuses: %v", err)
	}
}

func TestARepositoryThatTakesNoBranchIsAPermanentError(t *testing.T) {
	p := newPromoter(t, weave.ForgeGitHub, fleet())
	p.forge.Hook("pre-receive", "exit 1")
	_, err := p.Open(t.Context(), p.request)
	if !errors.Is(err, ErrForbidden) || len(p.forge.Pulls()) > 0 {
		t.Errorf("error %v, want %v", err, ErrForbidden)
	}
}

func TestNamesOfBranchesTellPipelinesApart(t *testing.T) {
	base := Request{Pipeline: Pipeline{Group: weave.Group, Namespace: "a", Name: "b"}, Environment: "c", Version: Version{Revision: "1.0.0"}}
	seen := map[string]bool{}
	for _, change := range []func(*Request){
		func(*Request) {}, func(r *Request) { r.Pipeline.Group = weave.OlderGroup }, func(r *Request) { r.Pipeline.Name = "b.lock" }, func(r *Request) { r.Pipeline.Name = "b-lock" },
		func(r *Request) { r.Environment = "c d" }, func(r *Request) { r.Environment = "c-d" }, func(r *Request) { r.Environment = "c..d" }, func(r *Request) { r.Environment = strings.Repeat("c", 500) },
		func(r *Request) { r.Version.Revision = "1.0.0+x" }, func(r *Request) { r.Version.Revision = "1.0.0-x" }, func(r *Request) { r.Version.Revision = "main@sha1:" + strings.Repeat("ab", 200) },
		func(r *Request) { r.Version.Revision = "~^:?*[\\" }, func(r *Request) { r.Version.Revision = "1.0.0,2.0.0" },
	} {
		r := base
		change(&r)
		n := namesOf(r)
		if seen[n.branch] || !strings.HasPrefix(n.branch, n.folder) || len(n.branch) > 250 || n.nth(n.attempt(3)) != 3 || n.nth(n.branch) != 1 || n.nth(n.branch+"-x") != 0 || n.nth(n.branch+"-03") != 0 {
			t.Errorf("%q", n.branch)
		}
		seen[n.branch] = true
	}
	if got := namesOf(base).branch; !strings.HasPrefix(got, "promotion/a/b/c/1.0.0-") {
		t.Errorf("the branch is %q", got)
	}
}
