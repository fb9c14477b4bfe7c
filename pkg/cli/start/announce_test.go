package start

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestGreeting(t *testing.T) {
	for name, test := range map[string]struct {
		clusters int
		want     []string
	}{
		"without clusters it says how to join one":  {clusters: 0, want: []string{"No cluster has joined yet", "manifold cluster join NAME"}},
		"with clusters it says how to look at them": {clusters: 2, want: []string{"manifold cluster list"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := greeting("https://127.0.0.1:6443", "/data/admin.kubeconfig", test.clusters, 3*time.Second)
			for _, want := range append(test.want, "ready at https://127.0.0.1:6443 after 3.0s", "export KUBECONFIG=/data/admin.kubeconfig\n") {
				if !strings.Contains(got, want) {
					t.Errorf("greeting lacks %q:\n%s", want, got)
				}
			}
		})
	}
}

func TestAnnounceWaitsForFileAndServer(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "admin.kubeconfig")
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); r.URL.Path != "/readyz" || n < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()

	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := &Options{IOStreams: streams}
	o.announce(t.Context(), kubeconfig, time.Now())
	if asked.Load() < 3 || !strings.Contains(out.String(), "ready at "+server.URL) {
		t.Errorf("asked %d times and printed %q", asked.Load(), out)
	}
}

func TestAnnounceSaysNothingWhenTheServerStops(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := &Options{IOStreams: streams}
	o.announce(ctx, filepath.Join(t.TempDir(), "none"), time.Now())
	if out.Len() > 0 {
		t.Errorf("printed %q", out)
	}
}
