package hostile

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
)

const tooMany = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too many requests","reason":"TooManyRequests","code":429}`

// failures are the ways in which an API server fails that does not lie: by errors with and without a body that anybody understands, by answers that end in
// the middle, by connections that are reset, and by taking its time.
var failures = []http.HandlerFunc{
	func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "etcdserver: leader changed", http.StatusInternalServerError)
	},
	func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, tooMany)
	},
	func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":`)
		panic(http.ErrAbortHandler)
	},
	func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(2 * time.Second):
		case <-r.Context().Done():
		}
		http.Error(w, "the server is overloaded", http.StatusServiceUnavailable)
	},
	func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "<html><body>Bad Gateway</body></html>")
	},
}

// TestAnAPIServerThatFailsNowAndThenLosesNothing has two of three requests to west fail, each in another way, while workloads are made, scaled and deleted and all
// watches end again and again. What runs there goes on, east does as it is told, and west catches up by itself.
func TestAnAPIServerThatFailsNowAndThenLosesNothing(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	a.create(deployment("kept", 2, "west"))
	a.create(deployment("both", 4, "east,west"))
	a.create(deployment("going", 1, "west"))
	for name, replicas := range map[string]int32{"kept": 2, "both": 4, "going": 1} {
		framework.Await(a.Logical, name, "runs", expect.Available(replicas))
	}
	running := map[string][]types.UID{}
	for _, name := range []string{"kept", "both", "own"} {
		running["west "+name], running["east "+name] = framework.PodUIDs(a.Scenario, a.Scenario.West, name), framework.PodUIDs(a.Scenario, a.Scenario.East, name)
	}

	var asked, failed atomic.Int64
	stop := a.west.Answer(func(r *liar.Request) bool { return !a.west.IsAdmin(r) && asked.Add(1)%3 != 0 }, func(w http.ResponseWriter, r *http.Request) {
		failures[int(failed.Add(1))%len(failures)](w, r)
	})
	defer stop()
	endAll := func() {
		for _, of := range mirrored(t) {
			a.west.End(of.GroupResource())
		}
		a.west.End(namespaces.GroupResource())
	}
	endAll()
	a.create(deployment("late", 2, "west"))
	a.create(deployment("near", 2, "east"))
	a.Logical.Kubectl("scale", "deployment/both", "--replicas=6")
	a.Logical.Kubectl("delete", "deployment/going", "--wait=false")
	framework.Await(a.Logical, "near", "runs in the cluster that does not fail", expect.Available(2))
	for round := range 5 {
		after := failed.Load() + int64(4*len(failures))
		endAll()
		a.Logical.Poll(fmt.Sprintf("round %d: all ways of failing were seen", round), func() error {
			if now := failed.Load(); now < after {
				return fmt.Errorf("%d requests have failed, of %d", now, asked.Load())
			}
			return nil
		})
	}
	stop()

	a.well()
	framework.Await(a.Logical, "late", "comes to run", expect.Available(2))
	framework.Await(a.Logical, "both", "has all its replicas", expect.Available(6))
	framework.AwaitGone[*appsv1.Deployment](a.Logical, "going")
	framework.AwaitGone[*appsv1.Deployment](a.Scenario.West, "going")
	for of, before := range running {
		side, name := a.Scenario.West, of[len("west "):]
		if of[:len("west")] == "east" {
			side = a.Scenario.East
		}
		now := framework.PodUIDs(a.Scenario, side, name)
		for _, uid := range before {
			if !slices.Contains(now, uid) {
				t.Errorf("a pod of %s ran through nothing but failures of the API server, and is gone: %v, now %v", of, before, now)
			}
		}
	}
	a.unharmed()
}
