package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/handler3"
)

// TestOpenAPIDocumentsAreWhatTheListSays also shows that documents of built-in kinds, which are made for who asks, are merged with those of others.
func TestOpenAPIDocumentsAreWhatTheListSays(t *testing.T) {
	_, config, _ := serve(t, "documents")
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // to another hash
	get := func(path, accept string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s answers with %s: %s (%v)", path, answer.Status, body, err)
		}
		return answer, string(body)
	}
	var list handler3.OpenAPIV3Discovery
	if _, body := get("/openapi/v3", "application/json"); json.Unmarshal([]byte(body), &list) != nil {
		t.Fatalf("no list of documents in %s", body)
	}
	for group, want := range map[string]string{
		"api/v1": "io.k8s.api.core.v1.Pod", "apis/apps/v1": "io.k8s.api.apps.v1.Deployment", "apis/manifold.dev/v1alpha1": "PlacementPolicy",
		"apis/delivery.manifold.dev/v1alpha1": "ApplicationRevision", "apis/apiextensions.k8s.io/v1": "CustomResourceDefinition",
		"apis/apiregistration.k8s.io/v1": "APIService", "version": "gitVersion",
	} {
		at := list.Paths[group].ServerRelativeURL
		answer, body := get(at, "application/json")
		parsed, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if hash := parsed.Query().Get("hash"); answer.Header.Get("Etag") != `"`+hash+`"` || !strings.Contains(body, want) {
			t.Errorf("%s is listed by %s and comes as %s; says %s: %t", group, hash, answer.Header.Get("Etag"), want, strings.Contains(body, want))
		}
	}
	var tags []string
	for range 2 {
		answer, body := get("/openapi/v2", "application/json")
		for _, want := range []string{"io.k8s.api.apps.v1.Deployment", "PlacementPolicy", "CustomResourceDefinition", "APIService"} {
			if !strings.Contains(body, want) {
				t.Errorf("the document of version 2 says nothing of %s", want)
			}
		}
		tags = append(tags, answer.Header.Get("Etag"))
	}
	if tags[0] == "" || tags[0] != tags[1] {
		t.Errorf("the document of version 2 has the tags %q", tags)
	}
}
