package fetch

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const password = "hunter2"

var jane = Login{Username: "jane", Password: password}

func dockerConfig(host, user, password string) Login {
	return Login{Docker: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))}
}

func TestAPrivateFileIsFetchedByALogin(t *testing.T) {
	server := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if user, pass, has := r.BasicAuth(); !has || user != "jane" || pass != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, script)
	})
	plain := serve(t, false, func(http.ResponseWriter, *http.Request) { t.Error("http is asked, with a login") })
	for name, test := range map[string]struct {
		url   string
		login Login
		want  string
	}{
		"by the one that the server takes": {url: server.URL + "/wait", login: jane},
		"not without one":                  {url: server.URL + "/wait", want: "401 Unauthorized"},
		"not by a wrong one":               {url: server.URL + "/wait", login: Login{Username: "jane", Password: "hunter3"}, want: "401 Unauthorized"},
		"not where there is to be one":     {url: server.URL + "/wait", login: Login{Missing: "there is no Secret"}, want: "there is no Secret"},
		"not by one of registries":         {url: server.URL + "/wait", login: dockerConfig("registry.example", "jane", password), want: "none for https"},
		"not where everybody could read":   {url: plain.URL + "/wait", login: jane, want: "would show it to others"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, trusting(server))
			_, err := c.Get(t.Context(), Source{URL: test.url, Sha256: sumOf(script), Login: test.login})
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter")) {
				t.Errorf("it says %v, want %q and no password", err, test.want)
			}
		})
	}
	t.Run("what is there needs none", func(t *testing.T) {
		c := newCache(t, trusting(server))
		source := Source{URL: server.URL + "/wait", Sha256: sumOf(script), Login: jane}
		if _, err := c.Get(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		source.Login = Login{Missing: "there is no Secret any more"}
		if _, err := c.Get(t.Context(), source); err != nil {
			t.Error(err)
		}
	})
}

// recorded notes what is sent where, and leads on.
type recorded struct {
	mu    sync.Mutex
	sent  []string
	leads map[string]string
}

func (r *recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	login := "no login"
	if user, _, has := request.BasicAuth(); has {
		login = user
	}
	r.sent = append(r.sent, request.URL.Host+request.URL.Path+" "+login)
	out := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(script)), Request: request}
	if to := r.leads[request.URL.Host+request.URL.Path]; to != "" {
		out.StatusCode = http.StatusTemporaryRedirect
		out.Header.Set("Location", to)
	}
	return out, nil
}

func TestALoginGoesToNoOtherHostThatAnAnswerLeadsTo(t *testing.T) {
	for name, test := range map[string]struct {
		leads map[string]string
		want  []string
	}{
		"another path of the host has it": {map[string]string{"a.example/x": "https://a.example/y"}, []string{"a.example/x jane", "a.example/y jane"}},
		"another host has it not":         {map[string]string{"a.example/x": "https://b.example/y"}, []string{"a.example/x jane", "b.example/y no login"}},
		"a name below it has it not":      {map[string]string{"a.example/x": "https://evil.a.example/y"}, []string{"a.example/x jane", "evil.a.example/y no login"}},
		"another port has it not":         {map[string]string{"a.example/x": "https://a.example:8443/y"}, []string{"a.example/x jane", "a.example:8443/y no login"}},
		"nor has who is led to from there": {
			map[string]string{"a.example/x": "https://b.example/y", "b.example/y": "https://c.example/z"}, []string{"a.example/x jane", "b.example/y no login", "c.example/z no login"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			heard := &recorded{leads: test.leads}
			r := newReader(Options{})
			r.over = &transport{named: heard, led: heard}
			from, err := url.Parse("https://a.example/x")
			must(t, err)
			body, err := r.openHTTP(t.Context(), from, jane)
			must(t, err)
			body.Close()
			if got := strings.Join(heard.sent, "; "); got != strings.Join(test.want, "; ") {
				t.Errorf("sent is %s, want %s", got, test.want)
			}
		})
	}
	t.Run("what is sent along goes nowhere else", func(t *testing.T) {
		heard := &recorded{leads: map[string]string{"a.example/token": "https://b.example/token"}}
		client := (&transport{named: heard, led: heard}).client(&url.URL{Scheme: "https", Host: "a.example"})
		if _, err := client.Post("https://a.example/token", "application/x-www-form-urlencoded", strings.NewReader("refresh_token="+password)); err == nil || len(heard.sent) != 1 {
			t.Errorf("error %v, sent is %q", err, heard.sent)
		}
	})
}

func TestAPrivateRegistryIsAskedByALogin(t *testing.T) {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var tokens string // where tokens are made, "" if the registry takes logins itself
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, pass, has := r.BasicAuth()
		may := has && user == "jane" && pass == password
		switch {
		case r.URL.Path == "/token":
			if !may {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"token": "a-token"})
		case tokens != "" && r.Header.Get("Authorization") != "Bearer a-token":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="registry",scope="repository:plugins/wait:pull"`, tokens))
			w.WriteHeader(http.StatusUnauthorized)
		case tokens == "" && !may:
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			images.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	repository, err := remote.NewRepository(host + "/plugins/wait")
	must(t, err)
	repository.Client = &auth.Client{Client: server.Client(), Credential: auth.StaticCredential(host, auth.Credential{Username: "jane", Password: password})}
	blob, err := oras.PushBytes(t.Context(), repository, "application/vnd.pipecd.piped.plugin", []byte(script))
	must(t, err)
	manifest, err := oras.PackManifest(t.Context(), repository, oras.PackManifestVersion1_1, "application/vnd.pipecd.piped.plugin+type", oras.PackManifestOptions{Layers: []ocispec.Descriptor{blob}})
	must(t, err)
	must(t, repository.Tag(t.Context(), manifest, "v1"))

	for name, test := range map[string]struct {
		login  Login
		tokens string
		want   string
	}{
		"by a name and a password":               {login: jane},
		"by a configuration of Docker":           {login: dockerConfig(host, "jane", password)},
		"by tokens that it has made":             {login: jane, tokens: server.URL + "/token"},
		"not by the login of another registry":   {login: dockerConfig("other.example", "jane", password), want: "it asks for a login that it was not given"},
		"not by a wrong one":                     {login: Login{Username: "jane", Password: "hunter3"}, want: "401"},
		"not by a configuration that cannot be":  {login: Login{Docker: `{"auths": hunter4`}, want: "the configuration of Docker cannot be read"},
		"not without one":                        {want: "it asks for a login that it was not given: spec.secretRef of a Plugin names the Secret that has it"},
		"not by tokens that anybody could watch": {login: jane, tokens: "http://" + host + "/token", want: "uses http but registry was contacted over https"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens = test.tokens
			c := newCache(t, trusting(server))
			_, err := c.Get(t.Context(), Source{URL: "oci://" + host + "/plugins/wait:v1", Sha256: sumOf(script), Login: test.login})
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter")) {
				t.Errorf("it says %v, want %q and no password", err, test.want)
			}
		})
	}
}

func TestALoginIsNotPrinted(t *testing.T) {
	for _, login := range []Login{jane, dockerConfig("a.example", "jane", password)} {
		asJSON, err := json.Marshal(struct{ Login Login }{login})
		must(t, err)
		for _, said := range []string{fmt.Sprint(login), fmt.Sprintf("%+v", struct{ Login Login }{login}), fmt.Sprintf("%#v", login), string(asJSON), errors.New(login.String()).Error()} {
			if strings.Contains(said, password) || strings.Contains(said, "jane") || strings.Contains(said, "auths") {
				t.Errorf("it prints %s", said)
			}
		}
	}
}
