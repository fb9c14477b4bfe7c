package stock

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/controller-manager/pkg/clientbuilder"
)

func TestWorkloadsOfANamespaceAreDeletedBeforeTheirPods(t *testing.T) {
	for name, test := range map[string]struct {
		client, resource string
		first            string // among what is deleted before
	}{
		"pods":                   {namespaceController, "pods", "deployments"},
		"nothing else":           {namespaceController, "services", "services"},
		"not by somebody else's": {"garbage-collector", "pods", "pods"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !strings.Contains(string(body), "Background") || r.Method != http.MethodDelete {
					t.Errorf("%s %s with %q (%v), want a deletion in the background", r.Method, r.URL.Path, body, err)
				}
				namespace, resource, ok := strings.Cut(r.URL.Path[strings.Index(r.URL.Path, "/namespaces/")+len("/namespaces/"):], "/")
				if !ok || namespace != "shop" {
					t.Errorf("request of %s", r.URL.Path)
				}
				got = append(got, resource)
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
			}))
			defer server.Close()
			clients := emptyingClients{clientbuilder.SimpleControllerClientBuilder{ClientConfig: &rest.Config{Host: server.URL}}}
			config, err := clients.Config(test.client)
			if err != nil {
				t.Fatal(err)
			}
			client, err := metadata.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			background := metav1.DeletePropagationBackground
			err = client.Resource(corev1.SchemeGroupVersion.WithResource(test.resource)).Namespace("shop").
				DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got[len(got)-1] != test.resource || !slices.Contains(got, test.first) || test.first == test.resource && len(got) != 1 {
				t.Errorf("deleted %v, want %s first and %s last", got, test.first, test.resource)
			}
		})
	}
}
