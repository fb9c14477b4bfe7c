package pods

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestTheProxyOfPodsHandsRequestsThrough(t *testing.T) {
	east := storagetest.Connections{"east": {Name: "east", Host: storagetest.Teapot(t), Transport: http.DefaultTransport, Client: fake.NewClientset(storagetest.LiveOf("web-1"))}}
	storagetest.Proxying(t, &podProxyREST{foundIn(mirror("east"), east)}, map[string]storagetest.Proxied{
		"to a pod":           {ID: "web-1", Options: &api.PodProxyOptions{Path: "/a/"}, Want: "GET /base/api/v1/namespaces/shop/pods/web-1/proxy/a/?q=1"},
		"to a port of a pod": {ID: "http:web-1:80", Options: &api.PodProxyOptions{Path: "/"}, Want: "GET /base/api/v1/namespaces/shop/pods/http:web-1:80/proxy/?q=1"},
		"not to no pod":      {ID: "web-2", Options: &api.PodProxyOptions{}, Refusal: apierrors.IsNotFound},
		"not out of a pod":   {ID: "web-1", Options: &api.PodProxyOptions{Path: "/../../../../kube-system/secrets/x"}, Refusal: apierrors.IsBadRequest},
		"not beside a port":  {ID: "web-1:80%2f..", Options: &api.PodProxyOptions{}, Refusal: apierrors.IsBadRequest},
	})
}

// A redirect of an app is for whoever asked the app. The server goes nowhere itself, and says nothing of its credential.
func TestTheServerFollowsNobodysRedirects(t *testing.T) {
	visits := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/secrets", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	east := storagetest.Cluster(nil)
	east.Host = address
	pods := foundIn(mirror("east"), storagetest.Connections{"east": east})
	ctx, _ := storagetest.As(t, "jane")
	handler, err := (&podProxyREST{pods}).Connect(ctx, "web-1", &api.PodProxyOptions{Path: "/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/", nil))
		if w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != elsewhere.URL+"/secrets" {
			t.Errorf("%s: %d to %q, want the app's answer", method, w.Code, w.Header().Get("Location"))
		}
	}
	log, err := (&logREST{pods}).Get(ctx, "web-1", &api.PodLogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = log.(rest.ResourceStreamer).InputStream(ctx, "v1", "text/plain")
	if err == nil || !strings.Contains(err.Error(), "is not followed") {
		t.Errorf("a log is read with error %v, want that the redirect is not followed", err)
	}
	if visits != 0 {
		t.Errorf("the server followed %d redirects", visits)
	}
}

// What the user's request says of who it is would count below before what Manifold says.
func TestProxiesDoNotPassOnWhoTheRequestSaysItIs(t *testing.T) {
	var heard http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard = r.Header }))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	east := storagetest.Cluster(nil)
	east.Host = address
	ctx, _ := storagetest.As(t, "jane")
	handler, err := (&podProxyREST{foundIn(mirror("east"), storagetest.Connections{"east": east})}).Connect(ctx, "web-1", &api.PodProxyOptions{Path: "/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	forged := []string{"Authorization", "Impersonate-User", "Impersonate-Group", "Impersonate-Extra-Manifold.dev%2fuser", "X-Remote-User"}
	for _, name := range forged {
		request.Header.Set(name, "system:admin")
	}
	request.Header.Set("X-Order", "1")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	for _, name := range forged {
		if value, ok := heard[name]; ok {
			t.Errorf("%s arrives as %q", name, value)
		}
	}
	if heard.Get("X-Order") != "1" {
		t.Errorf("what is for the app does not arrive: %v", heard)
	}
}
