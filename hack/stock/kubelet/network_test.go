package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// TestTheNetworkLeadsToPodsAndThisMachineAlone asks as an API server does, for addresses that a Service may still have.
func TestTheNetworkLeadsToPodsAndThisMachineAlone(t *testing.T) {
	client := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.130.0.1"},
	})
	// The API server selects by these fields, which the fake does not.
	client.PrependReactor("list", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		selected := action.(k8stesting.ListAction).GetListRestrictions().Fields
		ip, _ := selected.RequiresExactMatch("status.podIP")
		phase, _ := selected.RequiresExactMatch("status.phase")
		if ip == "10.130.0.1" && phase == string(corev1.PodRunning) {
			return false, nil, nil
		}
		return true, &corev1.PodList{}, nil
	})
	server := New(Config{Cluster: "east", Dir: t.TempDir(), Client: client})
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- server.forward.run(ctx) }()
	defer func() {
		cancel()
		if err := <-running; err != nil {
			t.Error(err)
		}
	}()
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "this machine") }))
	defer machine.Close()
	_, port, err := net.SplitHostPort(machine.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ address, want string }{
		"a running pod":                                  {"10.130.0.1:80", "pod: shop/web"},
		"a webhook beside the cluster":                   {"127.0.0.1:" + port, "this machine"},
		"and by its name":                                {"localhost:" + port, "this machine"},
		"nobody for a pod that has gone":                 {"10.130.0.2:80", `no running pod of cluster "east" has this address`},
		"nobody for a Service":                           {"10.96.0.10:443", "no running pod"},
		"nobody for an address that stands for all":      {"0.0.0.0:" + port, "no running pod"},
		"nobody where there is no port":                  {"10.130.0.1", "missing port"},
		"nobody at a port that there cannot be at a pod": {"10.130.0.1:70000", "port: "},
	} {
		t.Run(name, func(t *testing.T) {
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return server.dial(ctx, test.address) }
			transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
			answer := ""
			response, err := (&http.Client{Transport: transport}).Get("http://web.shop/")
			if err == nil {
				defer response.Body.Close()
				body, _ := io.ReadAll(response.Body)
				answer = string(body)
			}
			if got := fmt.Sprint(answer, err); !strings.Contains(got, test.want) {
				t.Errorf("%s: %s, want %q", test.address, got, test.want)
			}
		})
	}
	if err := loopbackAlone("tcp4", "203.0.113.1:80", nil); err == nil {
		t.Error("a name may stand for an address of the world")
	}
}
