package forges

import (
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestWhereTheAPIAndThePullRequestsOfARepositoryAre(t *testing.T) {
	for name, test := range map[string]struct {
		kind, url string
		// list is the API of its pull requests, address that of the fourth for people.
		list, address string
	}{
		"GitHub":                     {weave.ForgeGitHub, "https://github.com/acme/fleet.git", "https://api.github.com/repos/acme/fleet/pulls", "https://github.com/acme/fleet/pull/4"},
		"GitHub, without the ending": {weave.ForgeGitHub, "https://github.com/acme/fleet/", "https://api.github.com/repos/acme/fleet/pulls", "https://github.com/acme/fleet/pull/4"},
		"GitHub over SSH":            {weave.ForgeGitHub, "git@github.com:acme/fleet.git", "https://api.github.com/repos/acme/fleet/pulls", "https://github.com/acme/fleet/pull/4"},
		"GitHub Enterprise Server":   {weave.ForgeGitHub, "https://git.example.com/acme/fleet", "https://git.example.com/api/v3/repos/acme/fleet/pulls", "https://git.example.com/acme/fleet/pull/4"},
		"GitHub with data residency": {weave.ForgeGitHub, "https://acme.ghe.com/acme/fleet", "https://api.acme.ghe.com/repos/acme/fleet/pulls", "https://acme.ghe.com/acme/fleet/pull/4"},
		"GitLab, in subgroups":       {weave.ForgeGitLab, "https://gitlab.com/acme/teams/fleet.git", "https://gitlab.com/api/v4/projects/acme%2Fteams%2Ffleet/merge_requests", "https://gitlab.com/acme/teams/fleet/-/merge_requests/4"},
		"GitLab over SSH and a port": {weave.ForgeGitLab, "ssh://git@gitlab.example.com:2222/acme/fleet.git", "https://gitlab.example.com/api/v4/projects/acme%2Ffleet/merge_requests", "https://gitlab.example.com/acme/fleet/-/merge_requests/4"},
		"Gitea":                      {weave.ForgeGitea, "https://gitea.example.com:3000/acme/fleet.git", "https://gitea.example.com:3000/api/v1/repos/acme/fleet/pulls", "https://gitea.example.com:3000/acme/fleet/pulls/4"},
		"Gitea below a path":         {weave.ForgeGitea, "https://example.com/git/acme/fleet", "https://example.com/git/api/v1/repos/acme/fleet/pulls", "https://example.com/git/acme/fleet/pulls/4"},
		"Bitbucket Server":           {weave.ForgeBitbucketServer, "https://bb.example.com/scm/SHOP/fleet.git", "https://bb.example.com/rest/api/1.0/projects/SHOP/repos/fleet/pull-requests", "https://bb.example.com/projects/SHOP/repos/fleet/pull-requests/4"},
		"Bitbucket Server of a user": {weave.ForgeBitbucketServer, "https://bb.example.com/bb/scm/~ada/fleet.git", "https://bb.example.com/bb/rest/api/1.0/projects/~ada/repos/fleet/pull-requests", "https://bb.example.com/bb/users/ada/repos/fleet/pull-requests/4"},
		"Bitbucket Server over SSH":  {weave.ForgeBitbucketServer, "ssh://git@bb.example.com:7999/shop/fleet.git", "https://bb.example.com/rest/api/1.0/projects/shop/repos/fleet/pull-requests", "https://bb.example.com/projects/shop/repos/fleet/pull-requests/4"},
		"Azure DevOps":               {weave.ForgeAzureDevOps, "https://dev.azure.com/acme/My%20Shop/_git/fleet", "https://dev.azure.com/acme/My%20Shop/_apis/git/repositories/fleet/pullrequests", "https://dev.azure.com/acme/My%20Shop/_git/fleet/pullrequest/4"},
		"Azure DevOps, by default":   {weave.ForgeAzureDevOps, "https://dev.azure.com/acme/_git/fleet", "https://dev.azure.com/acme/fleet/_apis/git/repositories/fleet/pullrequests", "https://dev.azure.com/acme/fleet/_git/fleet/pullrequest/4"},
		"Azure DevOps, as it was":    {weave.ForgeAzureDevOps, "https://acme.visualstudio.com/shop/_git/fleet", "https://acme.visualstudio.com/shop/_apis/git/repositories/fleet/pullrequests", "https://acme.visualstudio.com/shop/_git/fleet/pullrequest/4"},
		"Azure DevOps over SSH":      {weave.ForgeAzureDevOps, "git@ssh.dev.azure.com:v3/acme/shop/fleet", "https://dev.azure.com/acme/shop/_apis/git/repositories/fleet/pullrequests", "https://dev.azure.com/acme/shop/_git/fleet/pullrequest/4"},
		"Azure DevOps Server":        {weave.ForgeAzureDevOps, "https://tfs.example.com/tfs/acme/shop/_git/fleet", "https://tfs.example.com/tfs/acme/shop/_apis/git/repositories/fleet/pullrequests", "https://tfs.example.com/tfs/acme/shop/_git/fleet/pullrequest/4"},
	} {
		t.Run(name, func(t *testing.T) {
			forge, err := New(Repository{Forge: test.kind, URL: test.url, Token: "t"}, outbound.Policy{})
			if err != nil {
				t.Fatal(err)
			}
			if got := forge.api + forge.pulls(); got != test.list {
				t.Errorf("the API is at %s, want %s", got, test.list)
			}
			if got := forge.Address(4); got != test.address {
				t.Errorf("the address is %s, want %s", got, test.address)
			}
			if number, ok := forge.Number(test.address); number != 4 || !ok {
				t.Errorf("the number is %d", number)
			}
			for _, other := range []string{"", "4", test.address + "/", test.address + "x", strings.Replace(test.address, "https", "http", 1), strings.TrimSuffix(test.address, "4") + "-4", strings.TrimSuffix(test.address, "4") + "04"} {
				if number, ok := forge.Number(other); ok {
					t.Errorf("%q has number %d", other, number)
				}
			}
		})
	}
}

func TestAddressesThatAreNoRepositoriesAreRefused(t *testing.T) {
	for _, test := range []struct{ kind, url string }{
		{weave.ForgeGitHub, ""}, {weave.ForgeGitHub, "https://github.com"}, {weave.ForgeGitHub, "https://github.com/acme"}, {weave.ForgeGitHub, "https://github.com/acme/fleet/more"},
		{weave.ForgeGitHub, "https://github.com/acme/.."}, {weave.ForgeGitHub, "https://github.com/acme/%2e%2e"}, {weave.ForgeGitHub, "https://github.com/acme/a%2Fb/c"},
		{weave.ForgeGitHub, "https://github.com/acme/fleet?x=y"}, {weave.ForgeGitHub, "https://github.com/acme/fleet#x"}, {weave.ForgeGitHub, "https://github.com/acme/a%0Ab"},
		{weave.ForgeGitHub, "https://ada:s3cret@github.com/acme/fleet"}, {weave.ForgeGitHub, "http://github.com/acme/fleet"}, {weave.ForgeGitHub, "file:///acme/fleet"}, {weave.ForgeGitHub, "/acme/fleet"},
		{weave.ForgeGitLab, "https://gitlab.com/fleet"}, {weave.ForgeGitea, "https://gitea.example.com/fleet"},
		{weave.ForgeBitbucketServer, "https://bb.example.com/SHOP/fleet.git"}, {weave.ForgeBitbucketServer, "https://bb.example.com/scm/fleet.git"},
		{weave.ForgeAzureDevOps, "https://dev.azure.com/acme/fleet"}, {weave.ForgeAzureDevOps, "https://dev.azure.com/_git/fleet"}, {weave.ForgeAzureDevOps, "https://dev.azure.com/acme/shop/_git"},
		{"", "https://github.com/acme/fleet"},
	} {
		if _, err := New(Repository{Forge: test.kind, URL: test.url, Token: "t"}, outbound.Policy{}); !errors.Is(err, outbound.ErrRefused) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s %q: error %v, want %v", test.kind, test.url, err, outbound.ErrRefused)
		}
	}
}

// answering is a forge that says always the same.
func answering(t *testing.T, kind string, code int, body string) *Forge {
	t.Helper()
	return served(t, kind, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	})
}

var kinds = []string{weave.ForgeGitHub, weave.ForgeGitLab, weave.ForgeBitbucketServer, weave.ForgeGitea, weave.ForgeAzureDevOps}

func TestAnswersThatMakeNoSenseAreErrors(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		body string
		is   error
		says string
	}{
		"nothing":                     {http.StatusOK, "", nil, "no pull request"},
		"a page for a browser":        {http.StatusOK, "<html>", nil, "no pull request"},
		"another object":              {http.StatusOK, `{"a": 1}`, nil, ""},
		"numbers in the wrong places": {http.StatusOK, `[{"number": "1", "iid": "1"}]`, nil, "no pull request"},
		"who are you":                 {http.StatusUnauthorized, `{"message": "Bad credentials"}`, ErrForbidden, "Bad credentials"},
		"who are you, of Azure":       {http.StatusNonAuthoritativeInfo, "<html>sign in", ErrForbidden, "203"},
		"not for you":                 {http.StatusForbidden, `{"errors": [{"message": "no s3cret-token \u001b[31m"}]}`, ErrForbidden, "no ..."},
		"not here":                    {http.StatusNotFound, `{"message": ["404", "Project Not Found"]}`, ErrNotFound, "Project Not Found"},
		"too much":                    {http.StatusTooManyRequests, strings.Repeat("x", 1000), nil, "429"},
		"broken":                      {http.StatusInternalServerError, `{"message": null}`, nil, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range kinds {
				forge := answering(t, kind, test.code, test.body)
				_, find := forge.Find(t.Context(), 1)
				_, create := forge.Create(t.Context(), Input{Title: "a", Branch: "b", Base: "c"})
				for doing, err := range map[string]error{"find": find, "create": create, "close": forge.Close(t.Context(), 1, "why")} {
					if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
						t.Errorf("%s of %s: error %v, want %v that says %q", doing, kind, err, test.is, test.says)
					}
					if err != nil && (strings.ContainsAny(err.Error(), "\x1b\n") || strings.Contains(err.Error(), "s3cret") || len(err.Error()) > 500) {
						t.Errorf("%s of %s: error %q", doing, kind, err)
					}
				}
			}
		})
	}
}

func TestAListIsReadNoFurtherThanItMayBe(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte("[" + strings.TrimSuffix(strings.Repeat(`{"number": 1},`, pageSize), ",") + "]"))
	}))
	defer server.Close()
	forge, err := New(Repository{
		Forge: weave.ForgeGitHub, URL: server.URL + "/acme/fleet", Token: "t", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}, outbound.Policy{Allow: func(net.IP) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := forge.List(t.Context(), "main"); err != nil || len(got) != mostPages*pageSize || asked != mostPages {
		t.Errorf("%d pull requests in %d pages, error %v", len(got), asked, err)
	}
}

func TestAForgeThatMayNotBeCalledIsNotCalled(t *testing.T) {
	for _, url := range []string{"https://127.0.0.1/acme/fleet", "https://169.254.169.254/acme/fleet"} {
		forge, err := New(Repository{Forge: weave.ForgeGitHub, URL: url, Token: "t"}, outbound.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := forge.List(t.Context(), "main"); !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("%s: error %v, want %v", url, err, outbound.ErrRefused)
		}
	}
}
