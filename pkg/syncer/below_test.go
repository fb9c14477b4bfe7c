package syncer

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// The watches of a cluster are independent: that of pods may show what is in a namespace before that of namespaces shows it, and what is
// trimmed then, nothing shows again.
func TestNamespaceIsOursFromTheMomentItIsMade(t *testing.T) {
	for name, test := range map[string]struct {
		answer int
		want   bool
	}{
		"made":    {http.StatusCreated, true},
		"refused": {http.StatusForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, namespace("shop")), "east")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var made corev1.Namespace
				if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &made) != nil || made.Labels[v1alpha1.LabelLogicalCluster] != logicalCluster {
					t.Errorf("it makes %s (%v), want a namespace with our mark", body, err)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.answer)
				_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop"}}`))
			}))
			t.Cleanup(server.Close)
			var err error
			if s.client, err = kubernetes.NewForConfig(&rest.Config{Host: server.URL}); err != nil {
				t.Fatal(err)
			}
			if err := s.EnsureNamespace(t.Context(), "shop"); (err == nil) != test.want {
				t.Fatal(err)
			}
			if got := s.below.Ours("shop"); got != test.want {
				t.Errorf("it is ours: %t, want %t", got, test.want)
			}
			kind, _ := projection.ForResource(namespaceResource)
			s.handlers.OfObjects(kind).OnDelete(namespace("shop"))
			if s.below.Ours("shop") {
				t.Error("it is ours although it is gone")
			}
		})
	}
}

func TestMirrorIsLookedAtWhenItsPodGoesAfterItsNamespace(t *testing.T) {
	mirror := &corev1.Pod{ObjectMeta: objectMeta("a")}
	s := attach(t, newUpstream(t, mirror), "east")
	foreign := &corev1.Pod{ObjectMeta: objectMeta("b")}
	for _, pod := range []*corev1.Pod{mirror, foreign} {
		s.handlers.OfPods().OnDelete(pod)
	}
	if got, want := s.pods.Queue.Len(), 1; got != want {
		t.Fatalf("%d pods wait to be looked at, want %d", got, want)
	}
	if name, _ := s.pods.Queue.Get(); name.Name != "a" {
		t.Errorf("pod %s is looked at", name)
	}
}

func TestNamespaceHoldsSomethingUntilItsLastObjectOfOursIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		below []projection.Object
		want  bool
	}{
		"itself does not count":        {below: []projection.Object{namespace("shop")}},
		"a Secret does":                {below: []projection.Object{namespace("shop"), secret("key")}, want: true},
		"one in another namespace not": {below: []projection.Object{namespace("shop"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "key"}}}},
		"a Deployment does as well":    {below: []projection.Object{projected(deployment("web", ""), 1, 1)}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := attach(t, newUpstream(t), "east", test.below...).below.holdsIn("shop"); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
