package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/kube-openapi/pkg/handler3"
)

// TestOpenAPIDocumentsAreWhatTheListSays also shows that documents of built-in kinds, which are made for who asks, are merged with those of others.
func TestOpenAPIDocumentsAreWhatTheListSays(t *testing.T) {
	_, config, _ := serve(t, "documents")
	reads := reader(t, config)
	get := func(path string) (*http.Response, string) {
		t.Helper()
		answer, body := reads(path)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s answers with %s: %s", path, answer.Status, body)
		}
		return answer, body
	}
	var list handler3.OpenAPIV3Discovery
	if _, body := get("/openapi/v3"); json.Unmarshal([]byte(body), &list) != nil {
		t.Fatalf("no list of documents in %s", body)
	}
	for group, want := range map[string]string{
		"api/v1": "io.k8s.api.core.v1.Pod", "apis/apps/v1": "io.k8s.api.apps.v1.Deployment", "apis/manifold.dev/v1alpha1": "PlacementPolicy",
		"apis/delivery.manifold.dev/v1alpha1": "ApplicationRevision", "apis/apiextensions.k8s.io/v1": "CustomResourceDefinition",
		"apis/apiregistration.k8s.io/v1": "APIService", "version": "gitVersion",
	} {
		at := list.Paths[group].ServerRelativeURL
		answer, body := get(at)
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
		answer, body := get("/openapi/v2")
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

// reader returns what a server answers to a path. Redirects are not followed, which lead to another hash.
func reader(t *testing.T, config *rest.Config) func(path string) (*http.Response, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(path string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/json")
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return answer, string(body)
	}
}

// TestKindsAreDescribedWhileTheyAreDefined is what kubectl explain and the validation of kubectl apply rest on.
func TestKindsAreDescribedWhileTheyAreDefined(t *testing.T) {
	_, config, _ := serve(t, "definitions")
	client, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	definitions, reads := client.ApiextensionsV1().CustomResourceDefinitions(), reader(t, config)
	const group, path = "fruit.example.com", "/openapi/v3/apis/fruit.example.com/v1"
	names := map[string]string{"apples": "Apple", "pears": "Pear"}
	define := func(plural, description string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: names[plural]},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Description: description}},
				}},
			},
		}
	}
	// eventually waits until the server says what it should of the group, in both versions of its documents, and in the list.
	eventually := func(what string, status int, says, not []string) {
		t.Helper()
		var last string
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
			answer, body := reads(path)
			_, list := reads("/openapi/v3")
			last = answer.Status + " " + body
			says := func(document string) bool {
				return !slices.ContainsFunc(says, func(word string) bool { return !strings.Contains(document, word) }) &&
					!slices.ContainsFunc(not, func(word string) bool { return strings.Contains(document, word) })
			}
			tag := strings.Trim(answer.Header.Get("Etag"), `"`)
			listed := strings.Contains(list, "apis/"+group+"/v1?hash="+tag)
			if answer.StatusCode != status || listed != (status == http.StatusOK) || !says(body) {
				return false, nil
			}
			_, all := reads("/openapi/v2") // which takes longer
			if !says(all) {
				last = "as above in version 2"
				return false, nil
			}
			return true, nil
		})
		if err != nil {
			t.Fatalf("%s: %v; it was %s", what, err, last)
		}
	}
	for _, plural := range []string{"apples", "pears"} {
		if _, err := definitions.Create(t.Context(), define(plural, "The first of the "+plural), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually("both are defined", http.StatusOK, []string{"com.example.fruit.v1.Apple", "com.example.fruit.v1.Pear", "The first of the apples"}, nil)

	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd, err := definitions.Get(t.Context(), "apples."+group, metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "The second of the apples"
		_, err = definitions.Update(t.Context(), crd, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually("one has changed", http.StatusOK, []string{"The second of the apples", "The first of the pears"}, []string{"The first of the apples"})

	if err := definitions.Delete(t.Context(), "apples."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually("one is left", http.StatusOK, []string{"com.example.fruit.v1.Pear"}, []string{"com.example.fruit.v1.Apple"})
	if err := definitions.Delete(t.Context(), "pears."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually("none is left", http.StatusNotFound, nil, []string{"com.example.fruit.v1"})
}
