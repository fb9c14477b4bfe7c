package syncer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// delays note after how long objects are to be looked at.
type delays struct {
	workqueue.TypedRateLimitingInterface[identity.Key]
	after map[identity.Key]time.Duration
}

func (l delays) AddAfter(key identity.Key, after time.Duration) { l.after[key] = after }

// Whoever stands before a cluster may answer that all was done, and no watch ever tells that it was not.
func TestWhatWasNotWrittenThoughItWasSaidToBeIsWrittenLater(t *testing.T) {
	web := deployment("web", toEast)
	key := identity.KeyOf(deployments, web)
	u := newUpstream(t, namespace("shop"), web)
	s := attach(t, u, "east", asOurs(namespace("shop"), "uid-of-shop"))
	again := delays{s.queue.TypedRateLimitingInterface, map[identity.Key]time.Duration{}}
	s.queue.TypedRateLimitingInterface = again
	writes := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		writes++
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"Deployment","apiVersion":"apps/v1"}`)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.reaches(client)
	for want := 1; want <= 2; want++ {
		clear(again.after)
		if err := s.look(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if writes != want || again.after[key] != steps.LookAgain {
			t.Fatalf("%d writes, want %d, and it is looked at again after %s, want %s", writes, want, again.after[key], steps.LookAgain)
		}
	}
}
