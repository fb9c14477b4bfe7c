package syncer

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// leading are the endpoints of a Service that are ready and those that are not.
func leading(service string, ready, unready []types.UID) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: objectMeta(service + "-1")}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	for _, uid := range slices.Concat(ready, unready) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: uid}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(slices.Contains(ready, uid))},
		})
	}
	return slice
}

// readyPods are those that a cluster has of a Deployment, with the ReplicaSet between.
func readyPods(live *appsv1.Deployment, uids ...types.UID) []projection.Object {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: live.Namespace, Name: live.Name + "-1", UID: "uid-of-set", OwnerReferences: controlledBy(live, "Deployment"),
	}}
	out := []projection.Object{live, rs}
	for _, uid := range uids {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: live.Namespace, Name: string(uid), UID: uid, OwnerReferences: controlledBy(rs, "ReplicaSet"),
			Labels: live.Spec.Template.Labels,
		}}
		setReady(pod, corev1.ConditionTrue)
		out = append(out, pod)
	}
	return out
}

// What nobody is led to yet takes the place of nothing.
func TestAShareIsHeldUntilServicesLeadToItsReplacement(t *testing.T) {
	above := deployment("web", `{"west":{"replicas":2}}`)
	web := service("web", map[string]string{"app": "web"})
	old, all := []types.UID{"old-1", "old-2"}, []types.UID{"old-1", "old-2", "new-1", "new-2"}
	for name, test := range map[string]struct {
		services []projection.Object
		slices   []*discoveryv1.EndpointSlice
		pods     []types.UID // that the watch has shown in west
		want     int32       // that east keeps
	}{
		"no Service selects it":                 {pods: all[2:]},
		"its Service leads to the new pods":     {services: []projection.Object{web}, slices: []*discoveryv1.EndpointSlice{leading("web", all, nil)}, pods: all[2:]},
		"its Service does not lead to them yet": {services: []projection.Object{web}, slices: []*discoveryv1.EndpointSlice{leading("web", old, nil)}, pods: all[2:], want: 2},
		"its Service leads to one of them": {
			services: []projection.Object{web}, slices: []*discoveryv1.EndpointSlice{leading("web", all[:3], nil)}, pods: all[2:], want: 1,
		},
		"they are not ready to its Service": {
			services: []projection.Object{web}, slices: []*discoveryv1.EndpointSlice{leading("web", old, all[2:])}, pods: all[2:], want: 2,
		},
		"the pods have not been seen yet": {services: []projection.Object{web}, slices: []*discoveryv1.EndpointSlice{leading("web", old, nil)}, want: 2},
		"its Service leads nowhere":       {services: []projection.Object{web}, pods: all[2:]},
		"a Service of others does not lead to them": {
			services: []projection.Object{service("api", map[string]string{"app": "api"})},
			slices:   []*discoveryv1.EndpointSlice{leading("api", old, nil)}, pods: all[2:],
		},
		"one of its Services does not lead to them yet": {
			services: []projection.Object{web, service("also", map[string]string{"app": "web"})},
			slices:   []*discoveryv1.EndpointSlice{leading("web", all, nil), leading("also", old, nil)}, pods: all[2:], want: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
			u := newUpstreamOf(t, factory, append(test.services, above)...)
			for _, slice := range test.slices {
				if err := factory.Discovery().V1().EndpointSlices().Informer().GetStore().Add(slice); err != nil {
					t.Fatal(err)
				}
			}
			live := projected(above, 2, 2)
			east := attach(t, u, "east", readyPods(live, old...)...)
			attach(t, u, "west", readyPods(projected(above, 2, 2), test.pods...)...)
			if step := east.next(above); step.Held != (test.want > 0) || step.Share.Replicas != test.want {
				t.Errorf("%+v; want %d replicas held", step, test.want)
			}
		})
	}
}

// Scaling down is no move, and waits for nothing.
func TestWhatIsScaledDownWaitsForNoService(t *testing.T) {
	above := deployment("web", `{"east":{"replicas":1}}`)
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	u := newUpstreamOf(t, factory, above, service("web", map[string]string{"app": "web"}))
	if err := factory.Discovery().V1().EndpointSlices().Informer().GetStore().Add(leading("web", []types.UID{"old-1"}, nil)); err != nil {
		t.Fatal(err)
	}
	live := projected(above, 2, 2)
	s := attach(t, u, "east", readyPods(live, "old-1", "old-2")...)
	if step := s.next(above); step.Held {
		t.Errorf("%+v; want it scaled down", step)
	}
}

func TestWhoWaitsForAServiceIsWokenWhenItLeadsElsewhere(t *testing.T) {
	above := deployment("web", `{"west":{"replicas":1}}`)
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	u := newUpstreamOf(t, factory, above, service("web", map[string]string{"app": "web"}))
	if err := factory.Discovery().V1().EndpointSlices().Informer().GetStore().Add(leading("web", []types.UID{"old"}, nil)); err != nil {
		t.Fatal(err)
	}
	live := projected(above, 1, 1)
	east := attach(t, u, "east", readyPods(live, "old")...)
	attach(t, u, "west", readyPods(projected(above, 1, 1), "new")...)
	if !east.next(above).Held {
		t.Fatal("it does not wait")
	}
	u.Services.Changed(cache.ObjectName{Namespace: "shop", Name: "api"})
	if got := east.enqueued(); len(got) > 0 {
		t.Errorf("looks at %v when another Service changes, want nothing", got)
	}
	u.Services.Changed(cache.ObjectName{Namespace: "shop", Name: "web"})
	if got := east.enqueued(); !slices.Equal(got, []string{"deployments shop/web"}) {
		t.Errorf("looks at %v, want the Deployment", got)
	}
	u.Services.Changed(cache.ObjectName{Namespace: "shop", Name: "web"})
	if got := east.enqueued(); len(got) > 0 {
		t.Errorf("looks at %v again, want nothing", got)
	}
}
