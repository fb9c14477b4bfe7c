package services

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
)

var (
	web     = cache.ObjectName{Namespace: "shop", Name: "web"}
	waiting = Waiter{Cluster: "east", Key: identity.Key{Resource: identity.Deployments, Namespace: "shop", Name: "web"}}
)

// cluster is one whose slices are asked about.
type cluster struct {
	*testing.T
	*Inside
	client *fake.Clientset

	mu    sync.Mutex
	waked []Waiter // guarded by mu
}

// woken are those that were woken.
func (c *cluster) woken() []Waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.waked)
}

// inside runs a test with a cluster that has these slices, in a bubble of time.
func inside(t *testing.T, test func(c *cluster), has ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{T: t, client: fake.NewClientset(has...)}
		watch, err := physical.Watcher{Client: c.client}.Watch(identity.EndpointSlices, "", TrimSlice)
		if err != nil {
			t.Fatal(err)
		}
		if c.Inside, err = NewInside(watch, clock.RealClock{}); err != nil {
			t.Fatal(err)
		}
		c.Woken(func(who Waiter) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.waked = append(c.waked, who)
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer c.Stop()
		defer cancel()
		c.Start(ctx)
		test(c)
	})
}

// asks has the slices watched until all that there are have been told.
func (c *cluster) asks() {
	c.Leads(web)
	time.Sleep(Proxied / 2) // of the bubble
	synctest.Wait()
}

// leads checks where a Service leads, and which of these pods every node sends requests to.
func (c *cluster) leads(wantTo, wantProxied []types.UID) {
	c.Helper()
	to, proxied, known := c.Leads(web)
	if !known || !to.Equal(sets.New(wantTo...)) || !proxied.Equal(sets.New(wantProxied...)) {
		c.Errorf("it leads to %v and nodes know %v (known: %t), want %v and %v", sets.List(to), sets.List(proxied), known, wantTo, wantProxied)
	}
}

// sees has the cluster write a slice, which is seen then.
func (c *cluster) sees(of *discoveryv1.EndpointSlice) {
	c.Helper()
	slices := c.client.DiscoveryV1().EndpointSlices(of.Namespace)
	_, err := slices.Update(c.Context(), of, metav1.UpdateOptions{})
	if err != nil {
		_, err = slices.Create(c.Context(), of, metav1.CreateOptions{})
	}
	if err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
}

func TestNothingIsWatchedBeforeSomebodyAsks(t *testing.T) {
	inside(t, func(c *cluster) {
		synctest.Wait()
		if asked := c.client.Actions(); len(asked) > 0 {
			t.Errorf("it asks %v, and nobody has asked", asked)
		}
		c.Await(web, waiting)
		if _, _, known := c.Leads(web); known {
			t.Error("it knows what nobody has told it")
		}
		c.asks()
		if !slices.Equal(c.woken(), []Waiter{waiting}) {
			t.Errorf("it woke %v when it came to know", c.woken())
		}
		c.leads(nil, nil)
	})
}

func TestWhatWasNamedBeforeWeCameMayHaveBeenSoJustThen(t *testing.T) {
	inside(t, func(c *cluster) {
		if !c.Young() {
			t.Error("it knows what nodes know, and has not begun to watch")
		}
		c.asks()
		if c.leads([]types.UID{"a", "b"}, nil); !c.Young() {
			t.Error("it knows what nodes know, and has only just begun to watch")
		}
		c.Await(web, waiting)
		time.Sleep(Proxied)
		synctest.Wait()
		if c.leads([]types.UID{"a", "b"}, []types.UID{"a", "b"}); c.Young() {
			t.Error("it does not know what nodes know")
		}
		if !slices.Equal(c.woken(), []Waiter{waiting}) {
			t.Errorf("it woke %v, want who waits", c.woken())
		}
		if !c.Makes(web) {
			t.Error("the cluster makes no slices, and there is one")
		}
	}, slice("web", true, "a", "b"), slice("api", true, "c"))
}

// Something moves to a cluster that has had nothing of ours: that there is no slice yet says nothing about whether there will be one.
func TestAClusterThatHasNoSliceYetIsGivenTimeToMakeOne(t *testing.T) {
	inside(t, func(c *cluster) {
		c.asks()
		time.Sleep(time.Hour) // nobody has come yet
		if !c.Makes(web) {
			t.Error("the cluster makes no slices, and had no time to")
		}
		c.Await(web, waiting)
		time.Sleep(Unmade - time.Millisecond)
		synctest.Wait()
		if !c.Makes(web) || len(c.woken()) > 0 {
			t.Errorf("it is given less than %s: woken are %v", Unmade, c.woken())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if c.Makes(web) || !slices.Equal(c.woken(), []Waiter{waiting}) {
			t.Errorf("who waits for a cluster that makes none goes on waiting: woken are %v", c.woken())
		}
		if !c.Makes(cache.ObjectName{Namespace: "shop", Name: "api"}) {
			t.Error("another Service is given no time")
		}
		c.sees(slice("api", true, "a"))
		if !c.Makes(web) {
			t.Error("the cluster makes slices of one Service, and none of another")
		}
	})
}

func TestWhatIsRememberedOfServicesWithoutSlicesIsBounded(t *testing.T) {
	inside(t, func(c *cluster) {
		c.asks()
		for i := range 3 * mostUnmade {
			c.Makes(cache.ObjectName{Namespace: "shop", Name: fmt.Sprintf("service-%d", i)})
		}
		if n := len(c.unmade); n > mostUnmade {
			t.Errorf("%d are remembered", n)
		}
		time.Sleep(Unmade)
	})
}

func TestNodesKnowAPodAMomentAfterItsSliceNamesIt(t *testing.T) {
	inside(t, func(c *cluster) {
		c.asks()
		time.Sleep(2 * Proxied)
		c.sees(slice("web", false, "b"))
		c.leads(nil, nil)
		c.sees(slice("web", true, "b"))
		c.leads([]types.UID{"b"}, nil)
		c.Await(web, waiting)
		time.Sleep(Proxied - time.Millisecond)
		synctest.Wait()
		if c.leads([]types.UID{"b"}, nil); len(c.woken()) > 0 {
			t.Errorf("it woke %v too early", c.woken())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if c.leads([]types.UID{"b"}, []types.UID{"b"}); !slices.Equal(c.woken(), []Waiter{waiting}) {
			t.Errorf("it woke %v, want who waits", c.woken())
		}
		// One more does not make nodes forget the other.
		c.sees(slice("web", true, "b", "c"))
		c.leads([]types.UID{"b", "c"}, []types.UID{"b"})
		c.sees(slice("web", true, "c"))
		c.leads([]types.UID{"c"}, nil)
	}, slice("web", false, "a"))
}

func TestASliceThatIsGoneNamesNobody(t *testing.T) {
	inside(t, func(c *cluster) {
		c.asks()
		if err := c.client.DiscoveryV1().EndpointSlices("shop").Delete(t.Context(), "web-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.leads(nil, nil)
		c.sees(slice("web", true, "a"))
		c.leads([]types.UID{"a"}, nil)
	}, slice("web", true, "a"))
}

func TestOfASliceOnlyTheReadyPodsAreKept(t *testing.T) {
	of := slice("web", true, "a")
	of.Endpoints[0].Addresses, of.Endpoints[0].TargetRef.Name = []string{"10.0.0.1"}, "web-a"
	of.Endpoints = append(of.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{UID: "b"}}, // ready, since it says nothing
		discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{UID: "c"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
		discoveryv1.Endpoint{Addresses: []string{"10.0.0.2"}})
	of.Labels["other"], of.Annotations = "x", map[string]string{"other": "x"}
	out, err := TrimSlice(of)
	if err != nil {
		t.Fatal(err)
	}
	kept := out.(*discoveryv1.EndpointSlice)
	if len(kept.Labels) != 1 || len(kept.Annotations) > 0 || len(kept.Endpoints) != 2 {
		t.Fatalf("kept is %+v", kept)
	}
	for i, uid := range []types.UID{"a", "b"} {
		if e := kept.Endpoints[i]; *e.TargetRef != (corev1.ObjectReference{UID: uid}) || len(e.Addresses) > 0 {
			t.Errorf("kept of endpoint %d is %+v", i, e)
		}
	}
	if tombstone, err := TrimSlice("other"); tombstone != "other" || err != nil {
		t.Errorf("what is no slice becomes %v, %v", tombstone, err)
	}
}
