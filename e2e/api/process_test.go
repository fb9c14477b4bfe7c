package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestASecondStartContinues(t *testing.T) {
	suite.Beside(t)
	e := framework.StartOwn(t, framework.Options{})
	s := framework.NewScenario(t, e)
	s.Logical.Kubectl("create", "configmap", "kept", "--from-literal=color=blue")
	s.Logical.Apply(manifests.Deployment("waiting", 2))
	s.Logical.Kubectl("delete", "clusterplacementpolicy", "default")
	viewer := s.Logical.As(framework.ServiceAccount(s, "viewer", "view"))
	before := framework.IdentityOf(t, e)

	// Somebody who watches does not keep it from ending.
	s.Logical.Start("get", "configmaps", "--watch").AwaitOutput("kept")
	if err := e.Manifold.Terminate(); err != nil {
		t.Fatalf("Ctrl-C does not end it cleanly: %v", err)
	}
	if err := e.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := framework.IdentityOf(t, e); after != before {
		t.Errorf("the logical cluster was %s and is %s after the second start", before, after)
	}
	if got := s.Logical.Kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.color}"); got != "blue" {
		t.Errorf("the ConfigMap says %q, want blue", got)
	}
	s.Logical.Kubectl("get", "deployment", "waiting")
	viewer.Kubectl("get", "configmaps")
	expect.Refused(t, s.Logical.Try("get", "clusterplacementpolicy", "default"), "NotFound")

	// A crash is no different.
	if err := e.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := e.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := framework.IdentityOf(t, e); after != before {
		t.Errorf("the logical cluster was %s and is %s after a crash", before, after)
	}
	s.Logical.Kubectl("get", "configmap", "kept")
}

func TestItIsReadyAndSafe(t *testing.T) {
	suite.Beside(t)
	e := framework.StartOwn(t, framework.Options{AuditPolicy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"})

	t.Run("those who do not say who they are see its health and nothing else", func(t *testing.T) {
		client := anonymous(t, e, &tls.Config{})
		for _, path := range []string{"/readyz", "/livez", "/healthz"} {
			if status, body := ask(t, client, e.Manifold.URL()+path); status != http.StatusOK {
				t.Errorf("%s answers %d: %s", path, status, body)
			}
		}
		for _, path := range []string{
			"/", "/api", "/apis", "/version", "/metrics", "/openapi/v2", "/api/v1/namespaces", "/apis/manifold.dev/v1alpha1/clusters", "/readyz/ping",
		} {
			if status, body := ask(t, client, e.Manifold.URL()+path); status != http.StatusUnauthorized && status != http.StatusForbidden {
				t.Errorf("%s answers %d, want it refused: %s", path, status, body)
			}
		}
	})
	t.Run("its certificate is of the authority in the kubeconfig", func(t *testing.T) {
		connection, err := tls.Dial("tcp", strings.TrimPrefix(e.Manifold.URL(), "https://"), anonymous(t, e, &tls.Config{}).Transport.(*http.Transport).TLSClientConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		names := connection.ConnectionState().PeerCertificates[0].DNSNames
		if !slices.Contains(names, "localhost") || !slices.Contains(names, "kubernetes.default.svc") {
			t.Errorf("the certificate is for %q, want the usual names too", names)
		}
	})
	t.Run("nothing is served without TLS or by an old version of it", func(t *testing.T) {
		if status, body := ask(t, http.DefaultClient, strings.Replace(e.Manifold.URL(), "https:", "http:", 1)+"/readyz"); status != http.StatusBadRequest {
			t.Errorf("plain HTTP answers %d: %s", status, body)
		}
		old := anonymous(t, e, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
		if response, err := old.Get(e.Manifold.URL() + "/readyz"); err == nil {
			response.Body.Close()
			t.Errorf("TLS 1.1 is served: %s", response.Status)
		}
	})
	t.Run("metrics are for those who may", func(t *testing.T) {
		raw, err := e.Logical.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(raw), "apiserver_request_total") {
			t.Errorf("metrics: %v\n%.300s", err, raw)
		}
	})
	t.Run("it listens on its secure port and nowhere else", func(t *testing.T) {
		addresses := listeners(t, e.Manifold.Process().PID())
		if want := []string{strings.TrimPrefix(e.Manifold.URL(), "https://")}; !slices.Equal(addresses, want) {
			t.Errorf("it listens on %q, want %q alone", addresses, want)
		}
	})
	t.Run("requests are audited", func(t *testing.T) { testAudit(t, e) })
	t.Run("a second process on the same data is refused", func(t *testing.T) { testOneProcess(t, e) })
	t.Run("its data is for its owner alone", func(t *testing.T) {
		for path, want := range map[string]os.FileMode{e.Manifold.DataDir(): 0o700 | os.ModeDir, e.Manifold.Kubeconfig(): 0o600} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != want {
				t.Errorf("%s has mode %s, want %s", path, info.Mode(), want)
			}
		}
	})
}

func testOneProcess(t *testing.T, e *framework.Environment) {
	out, err := exec.CommandContext(t.Context(), e.Manifold.Binary(), "start", "--data-dir", e.Manifold.DataDir(), "--secure-port", "0").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("a second process on the same data directory: %v\n%s", err, out)
	}
	expect.Says(t, string(out), "is in use by another manifold")
}

func testAudit(t *testing.T, e *framework.Environment) {
	s := framework.NewScenario(t, e)
	s.Logical.Kubectl("create", "configmap", "audited", "--from-literal=color=blue")
	event := framework.AwaitAudited(s, func(e framework.AuditEvent) bool { return e.Verb == "create" && e.ObjectRef.Name == "audited" })
	if event.User.Username == "" {
		t.Errorf("the audit log does not say who: %+v", event)
	}
}

// anonymous returns a client that trusts the authority of the kubeconfig and has no credentials.
func anonymous(t *testing.T, e *framework.Environment, config *tls.Config) *http.Client {
	t.Helper()
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(e.Logical.Config.CAData) {
		t.Fatal("the kubeconfig has no authority")
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func ask(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Deadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}
