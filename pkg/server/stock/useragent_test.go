package stock

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestStockControllersComeAsTheStockProgram(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.UserAgent()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"web"}}`))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	asStockProgram(config)
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "horizontal-pod-autoscaler"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("shop").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "kube-controller-manager/") || !strings.HasSuffix(got, "/horizontal-pod-autoscaler") {
		t.Errorf("the user agent is %q, want that of the stock program with the controller's name", got)
	}
}
