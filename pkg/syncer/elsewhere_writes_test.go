package syncer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/endpoints"
)

// endpointsServer is a cluster that takes slices, and shows them as its watch would.
func endpointsServer(t *testing.T, s *testSyncer) (writes *int) {
	t.Helper()
	writes = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var slice discoveryv1.EndpointSlice
		if err != nil || !strings.Contains(r.URL.Path, "/endpointslices") || json.Unmarshal(body, &slice) != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		*writes++
		slice.UID, slice.Generation = "uid-below", int64(*writes)
		if err := s.below.Stores[identity.EndpointSlices].Add(&slice); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(slice); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.reaches(client)
	return writes
}

func TestAHundredPodsThatChangeInASecondCostThreeWrites(t *testing.T) {
	slice := sliceOf("db")
	u := newUpstream(t, namespace("shop"), slice, serviceWith("db"), deployment("db", toWest), deployment("api", toEast))
	meshed(u, "east", "west")
	east := attach(t, u, "east", asOurs(namespace("shop"), "uid-of-shop"), asOurs(serviceWith("db"), "uid-of-db"))
	now := clocktesting.NewFakePassiveClock(time.Now())
	east.pace = endpoints.NewPace(now)
	writes := endpointsServer(t, east)
	key := identity.Key{Resource: identity.EndpointSlices, Namespace: "shop", Name: slice.Name}
	step := func() {
		t.Helper()
		if err := east.look(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		east.enqueued()
	}
	var pods []*corev1.Pod
	for i := range 100 {
		pod := podAt(fmt.Sprintf("db-%d", i), "west", fmt.Sprintf("10.2.0.%d", i+1))
		pods = append(pods, pod)
		hold(t, storesOf(u), []projection.Object{pod, sliceOf("db", pods...)})
		step()
		if i == 0 && *writes != 1 {
			t.Fatalf("%d writes for the first pod, want one at once", *writes)
		}
		now.SetTime(now.Now().Add(10 * time.Millisecond))
	}
	now.SetTime(now.Now().Add(endpoints.Interval))
	step()
	step()
	if *writes != 3 {
		t.Errorf("%d writes, want 3", *writes)
	}
	live := east.below.Get(key).(*discoveryv1.EndpointSlice)
	if len(live.Endpoints) != 100 || live.Labels[discoveryv1.LabelManagedBy] != v1alpha1.EndpointSlicesManager {
		t.Errorf("it leads to %d pods in the end, with labels %v", len(live.Endpoints), live.Labels)
	}
}

func storesOf(u *Upstream) map[schema.GroupVersionResource]cache.Store {
	out := map[schema.GroupVersionResource]cache.Store{}
	for resource, store := range u.Stores {
		out[resource] = store
	}
	return out
}

func TestSlicesThatWereChangedInTheClusterAreHealedAndGoWithWhatTheyAreMadeOf(t *testing.T) {
	there := podAt("db-2", "west", "10.2.0.1")
	slice := sliceOf("db", there)
	slice.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("sql"), Port: ptr.To[int32](5432)}}
	u := newUpstream(t, namespace("shop"), slice, there, serviceWith("db"), deployment("db", toWest), deployment("api", toEast))
	meshed(u, "east", "west")
	east := attach(t, u, "east", asOurs(namespace("shop"), "uid-of-shop"), asOurs(serviceWith("db"), "uid-of-db"))
	kind, _ := projection.KindOf(slice)
	plan := func() string {
		l, err := east.lookAt(t.Context(), identity.KeyOf(kind, slice))
		if err != nil {
			t.Fatal(err)
		}
		p := east.planner.Plan(l)
		return fmt.Sprintf("%s %s", p.Task, p.Action.Step)
	}
	if got := plan(); got != "project Create" {
		t.Errorf("plans to %s, want it made", got)
	}
	desired, _, err := east.desired(kind, slice, nil)
	if err != nil {
		t.Fatal(err)
	}
	live := desired.(*discoveryv1.EndpointSlice).DeepCopy()
	live.UID = "uid-below"
	put := func() {
		if err := east.below.Stores[identity.EndpointSlices].Add(live); err != nil {
			t.Fatal(err)
		}
	}
	if put(); !strings.HasSuffix(plan(), "Nothing") {
		t.Errorf("plans to %s, want nothing", plan())
	}
	live.Endpoints[0].Addresses = []string{"192.0.2.1"}
	if put(); !strings.HasSuffix(plan(), "Apply") {
		t.Errorf("plans to %s when it leads elsewhere, want it applied", plan())
	}
	// Whoever may write there leads nobody to another port, to another Service, or as if it were the cluster's own.
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"another port":        func(s *discoveryv1.EndpointSlice) { s.Ports = []discoveryv1.EndpointPort{{Port: ptr.To[int32](22)}} },
		"for another Service": func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "vault" },
		"as the cluster's own": func(s *discoveryv1.EndpointSlice) {
			s.Labels[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
		},
		"one endpoint more": func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.2"}})
		},
	} {
		live = desired.(*discoveryv1.EndpointSlice).DeepCopy()
		live.UID = "uid-below"
		change(live)
		if put(); !strings.HasSuffix(plan(), "Apply") {
			t.Errorf("%s: plans to %s, want it applied", name, plan())
		}
	}
	for name, gone := range map[string]func(){
		"the Service is gone":            func() { _ = u.Stores[identity.Services].Delete(serviceWith("db")) },
		"the slice is gone":              func() { _ = u.Stores[identity.EndpointSlices].Delete(slice) },
		"the network is gone":            func() { u.Endpoints.Follow("east", &v1alpha1.Cluster{}) },
		"nothing runs here any more":     func() { _ = u.Stores[deploymentResource].Delete(deployment("api", "")) },
		"the only pod has ended by then": func() { _ = u.Stores[podResource].Delete(there) },
	} {
		gone()
		if got := plan(); !strings.HasPrefix(got, "delete") {
			t.Errorf("%s: plans to %s, want it deleted", name, got)
		}
		hold(t, storesOf(u), []projection.Object{serviceWith("db"), slice, there, deployment("api", toEast)})
		meshed(u, "east")
	}
}
