package api

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// TestAnAggregatedAPIIsServed puts an API server of its own behind the logical cluster.
func TestAnAggregatedAPIIsServed(t *testing.T) {
	s := suite.Scenario(t)
	port := serveAggregated(t, s, "aggregated.example.com")
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata:
  name: aggregated
spec:
  type: ExternalName
  externalName: 127.0.0.1
  ports:
  - port: %s
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.aggregated.example.com
spec:
  group: aggregated.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service:
    name: aggregated
    namespace: %s
    port: %[1]s
`, port, s.Namespace))
	t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "apiservice", "v1.aggregated.example.com") })
	s.Logical.Kubectl("wait", "apiservice/v1.aggregated.example.com", "--for=condition=Available", "--timeout=60s")

	s.Logical.Poll("its kinds are among the others", func() error {
		if r := s.Logical.Try("api-resources", "--api-group=aggregated.example.com"); !strings.Contains(r.Stdout, "gauges") {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	user := s.Logical.Kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	expect.Says(t, s.Logical.Kubectl("get", "--raw", "/apis/aggregated.example.com/v1/gauges"), "asked by "+user)
	expect.Refused(t, s.Logical.As(framework.ServiceAccount(s, "viewer", "view")).Try("get", "--raw", "/apis/aggregated.example.com/v1/gauges"), "forbidden")
}

// serveAggregated serves an API group of one kind to the logical cluster's API server alone, and returns its port.
func serveAggregated(t *testing.T, s *framework.Scenario, group string) (port string) {
	t.Helper()
	config, err := s.Environment.Logical.Kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(config.Data["requestheader-client-ca-file"])) {
		t.Fatalf("no authority of the front proxy is published: %v", config.Data)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/" + group + "/v1":
			fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1",`+
				`"resources":[{"name":"gauges","singularName":"gauge","namespaced":false,"kind":"Gauge","verbs":["get","list"]}]}`, group)
		case "/apis/" + group + "/v1/gauges":
			fmt.Fprintf(w, `{"message":"asked by %s"}`, r.Header.Get("X-Remote-User"))
		default:
			http.NotFound(w, r)
		}
	}))
	certificate, _ := framework.SelfSigned(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL[strings.LastIndex(server.URL, ":")+1:]
}
