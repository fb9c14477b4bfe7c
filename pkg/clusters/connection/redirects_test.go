package connection

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/internal/redirects"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

// A cluster would be sent its own token's worth of requests, deletions among them, to whomever it names, and be believed what that one says.
func TestNoClientOfAClusterFollowsItElsewhere(t *testing.T) {
	var stolen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Method+" with "+r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c, err := dial("east", &rest.Config{Host: server.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, Options{UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for name, request := range map[string]func(ctx context.Context) error{
		"a read": func(ctx context.Context) error {
			_, err := c.Client.CoreV1().Pods("shop").Get(ctx, "web", metav1.GetOptions{})
			return err
		},
		"a watch": func(ctx context.Context) error {
			_, err := c.Client.CoreV1().Pods("shop").Watch(ctx, metav1.ListOptions{})
			return err
		},
		"a deletion": func(ctx context.Context) error {
			return c.Client.CoreV1().Pods("shop").Delete(ctx, "web", metav1.DeleteOptions{})
		},
		"an object of any kind": func(ctx context.Context) error {
			return c.Dynamic.Resource(pods).Namespace("shop").Delete(ctx, "web", metav1.DeleteOptions{})
		},
		"metadata": func(ctx context.Context) error {
			_, err := c.Metadata.Resource(pods).Namespace("shop").List(ctx, metav1.ListOptions{})
			return err
		},
		"the version": func(context.Context) error {
			_, err := c.Client.Discovery().ServerVersion()
			return err
		},
		"a request over other lines": func(ctx context.Context) error {
			_, err := c.second.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if redirect := new(redirects.Error); !errors.As(request(t.Context()), &redirect) {
				t.Errorf("error %v, want that of a redirect", request(t.Context()))
			}
		})
	}
	report := health.Probe(t.Context(), c.Client, "east", server.URL, "")
	if report.Reason != health.ReasonNotReady || !report.Void || !strings.Contains(report.Message, "redirect (307)") || !strings.Contains(report.Message, "correct the address") {
		t.Errorf("the cluster is said to be %+v", report)
	}
	if len(stolen) > 0 {
		t.Errorf("followed: %q", stolen)
	}
}
