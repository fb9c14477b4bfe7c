package health

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// apiServer answers the two requests of a probe: with a namespace, or with the status if it is not 200, and /readyz with the other two.
type apiServer struct {
	status       int
	readyz       int
	readyzAnswer string
}

func (s apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/readyz":
		w.WriteHeader(s.readyz)
		_, _ = w.Write([]byte(s.readyzAnswer))
	case r.URL.Path != "/api/v1/namespaces/kube-system":
		http.NotFound(w, r)
	case s.status != http.StatusOK:
		w.WriteHeader(s.status)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(s.status), Message: "storage is down",
		})
	default:
		namespace := corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
		namespace.Name, namespace.UID = "kube-system", "uid-1"
		_ = json.NewEncoder(w).Encode(namespace)
	}
}

func TestProbe(t *testing.T) {
	const checks = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]api failed: reason withheld\nreadyz check failed\n"
	for name, test := range map[string]struct {
		server apiServer
		want   string
		reason string
		uid    string
		says   string
	}{
		"a cluster seen for the first time": {
			server: apiServer{status: 200, readyz: 200}, reason: ReasonReady, uid: "uid-1", says: "ready",
		},
		"the cluster that joined": {
			server: apiServer{status: 200, readyz: 200}, want: "uid-1", reason: ReasonReady, uid: "uid-1", says: "ready",
		},
		"another cluster at the address": {
			server: apiServer{status: 200, readyz: 200}, want: "uid-2", reason: ReasonDifferentCluster, uid: "uid-1", says: "is uid-1, that of",
		},
		"a cluster that fails its checks names them": {
			server: apiServer{status: 200, readyz: 500, readyzAnswer: checks}, reason: ReasonNotReady, uid: "uid-1",
			says: "failing checks: api, etcd",
		},
		"a cluster that is not ready and says nothing": {
			server: apiServer{status: 200, readyz: 503}, reason: ReasonNotReady, uid: "uid-1", says: "/readyz answers with status 503",
		},
		"a cluster that hides /readyz": {
			server: apiServer{status: 200, readyz: 403}, reason: ReasonReady, uid: "uid-1", says: "ready",
		},
		"a cluster that does not accept the credential": {server: apiServer{status: 401}, reason: ReasonUnauthorized, says: "join east"},
		"a cluster whose storage is down":               {server: apiServer{status: 500}, reason: ReasonNotReady, says: "storage is down"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.server)
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got := Probe(t.Context(), client, "east", server.URL, test.want)
			if got.Reason != test.reason || got.UID != test.uid || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %+v, want reason %s, UID %q, words %q", got, test.reason, test.uid, test.says)
			}
		})
	}
}

func TestProbeOfNobody(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if got := Probe(t.Context(), client, "east", server.URL, ""); got.Heard() || !strings.Contains(got.Message, "connection refused") {
		t.Errorf("got %+v, want silence", got)
	}
}
