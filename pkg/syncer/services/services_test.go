package services

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/identity"
)

func slice(service string, ready bool, pods ...types.UID) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service},
	}}
	for _, pod := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready)}, TargetRef: &corev1.ObjectReference{UID: pod},
		})
	}
	return s
}

func TestWhoWaitsIsWokenOnceByItsService(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Discovery().V1().EndpointSlices().Informer()
	var woken []string
	var happens cache.ResourceEventHandler
	s := &Services{}
	err := s.Watch(informer, func(who Waiter) { woken = append(woken, who.Cluster+" "+who.Key.String()) },
		func(_ cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
			happens = handler
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	web := cache.ObjectName{Namespace: "shop", Name: "web"}
	who := Waiter{Cluster: "east", Key: identity.Key{Resource: identity.Deployments, Namespace: "shop", Name: "web"}}
	s.Await(web, who)
	s.Await(web, who)
	if happens.OnAdd(slice("api", true), false); len(woken) > 0 {
		t.Errorf("another Service woke %v", woken)
	}
	happens.OnUpdate(slice("web", false), slice("web", true))
	if want := []string{"east deployments shop/web"}; !slices.Equal(woken, want) {
		t.Errorf("it woke %v, want %v", woken, want)
	}
	if happens.OnDelete(cache.DeletedFinalStateUnknown{Obj: slice("web", true)}); len(woken) != 1 {
		t.Errorf("it woke %v, who waits no longer", woken)
	}
}

func TestAServiceLeadsToWhatIsReady(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Discovery().V1().EndpointSlices().Informer()
	s := &Services{}
	if err := s.Watch(informer, nil, func(cache.SharedIndexInformer, cache.ResourceEventHandler) error { return nil }); err != nil {
		t.Fatal(err)
	}
	second := slice("web", false, "c")
	second.Name = "web-2"
	for _, of := range []*discoveryv1.EndpointSlice{slice("web", true, "a", "b"), second, slice("api", true, "d")} {
		if err := informer.GetStore().Add(of); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Pods(cache.ObjectName{Namespace: "shop", Name: "web"}); !got.Equal(sets.New[types.UID]("a", "b")) {
		t.Errorf("it leads to %v, want a and b", got.UnsortedList())
	}
}
