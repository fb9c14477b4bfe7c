package physical

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

func TestReach(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/version", answer(http.StatusOK, `{"gitVersion":"v1.37.1"}`))
	mux.HandleFunc("/api/v1/namespaces/kube-system", answer(http.StatusOK,
		`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"the-uid"}}`))

	for name, test := range map[string]struct {
		handler   http.Handler
		untrusted bool
		want      string
	}{
		"a cluster says who it is":                        {handler: mux},
		"a certificate of another CA is refused":          {handler: mux, untrusted: true, want: "not to be trusted"},
		"an unknown credential is named":                  {handler: answer(http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","code":401,"reason":"Unauthorized"}`), want: "does not know the credential"},
		"somebody who sends us elsewhere is not followed": {handler: http.RedirectHandler("/version", http.StatusFound), want: "which is not followed"},
		"something else than an API server is told":       {handler: answer(http.StatusOK, `{"hello":"world"}`), want: "does not answer like a Kubernetes API server"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(test.handler)
			defer server.Close()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			if test.untrusted {
				ca = otherCA(t)
			}
			got, err := reach(t.Context(), accessTo(t, server.URL, string(ca)))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), server.URL) {
					t.Errorf("reach: %v, want the address and %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.UID != "the-uid" || got.Version != "v1.37.1" {
				t.Errorf("reached %s %s", got.UID, got.Version)
			}
		})
	}
}

func TestReachNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "https://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = reach(t.Context(), accessTo(t, address, string(otherCA(t))))
	if err == nil || !strings.Contains(err.Error(), address+" does not answer") {
		t.Errorf("reach: %v, want that %s does not answer", err, address)
	}
}

func accessTo(t *testing.T, server, ca string) access {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), ca)
	file := filepath.Join(dir, "kubeconfig")
	write(t, file, fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, server))
	a, err := loadAccess(file, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// otherCA is a certificate that signs no test server.
func otherCA(t *testing.T) []byte {
	t.Helper()
	certificate, _, err := cert.GenerateSelfSignedCertKey("elsewhere", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
