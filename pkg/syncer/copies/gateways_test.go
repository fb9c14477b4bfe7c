package copies

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// known is a logical cluster with the metadata of these objects.
type known map[Key]*metav1.PartialObjectMetadata

func (k known) Get(key Key) (Kind, *metav1.PartialObjectMetadata, bool) {
	return Kind{Resource: key.Resource, Versions: []string{"v1"}}, k[key], true
}
func (known) Concerns(string) []Key { return nil }
func (known) Changed(Key, bool)     {}

var httpRoutes = schema.GroupResource{Group: gatewayGroup, Resource: "httproutes"}

// holds has a loop see an object of ours.
func (l *Loop) holds(t *testing.T, resource schema.GroupResource, name, uid string, content map[string]any) *unstructured.Unstructured {
	t.Helper()
	live := &unstructured.Unstructured{Object: content}
	live.SetNamespace("shop")
	live.SetName(name)
	live.SetLabels(map[string]string{v1alpha1.LabelLogicalCluster: "logical"})
	live.SetAnnotations(map[string]string{v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: name, v1alpha1.AnnotationUID: uid})
	w := l.watches[resource]
	if w == nil {
		w = &watch{informer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &unstructured.Unstructured{}, 0, cache.Indexers{})}
		l.watches[resource] = w
	}
	if err := w.informer.GetIndexer().Add(live); err != nil {
		t.Fatal(err)
	}
	return live
}

func gatewayWith(addresses ...any) map[string]any {
	return map[string]any{"apiVersion": gatewayGroup + "/v1", "kind": "Gateway", "status": map[string]any{"addresses": addresses}}
}

// routeOf is a route for a Gateway that leads to Services.
func routeOf(gateway string, services ...string) map[string]any {
	var backends []any
	for _, name := range services {
		backends = append(backends, map[string]any{"name": name, "port": int64(80)})
	}
	return map[string]any{"apiVersion": gatewayGroup + "/v1", "kind": "HTTPRoute", "spec": map[string]any{
		"parentRefs": []any{map[string]any{"name": gateway}}, "rules": []any{map[string]any{"backendRefs": backends}},
	}}
}

func TestWhatACopyIsKeptForThatIsToLeave(t *testing.T) {
	noon := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	address := map[string]any{"value": "192.0.2.1"}
	status := func(ago int) string {
		return fmt.Sprintf(`{"east":{"withdrawn":%q}}`, noon.Add(-time.Duration(ago)*time.Second).Format(time.RFC3339))
	}
	above := func(name string, annotations ...string) *metav1.PartialObjectMetadata {
		out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Annotations: map[string]string{
			v1alpha1.AnnotationPlacement: `{"west":{"replicas":1}}`,
		}}}
		for i := 0; i < len(annotations); i += 2 {
			out.Annotations[annotations[i]] = annotations[i+1]
		}
		return out
	}
	front, web := Key{GatewayResource, "shop", "front"}, Key{httpRoutes, "shop", "web"}
	deleted := above("front")
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	for name, test := range map[string]struct {
		of      Key
		gateway *metav1.PartialObjectMetadata
		live    map[string]any
		runs    bool // what the route leads to
		policy  int  // seconds, 0 if it says nothing
		waits   bool
		until   int // seconds from noon
	}{
		"a Gateway without an address goes":           {of: front, gateway: above("front"), live: gatewayWith()},
		"one with one stays":                          {of: front, gateway: above("front"), live: gatewayWith(address), waits: true},
		"and for a while after that has left":         {of: front, gateway: above("front", v1alpha1.AnnotationStatus, status(10)), live: gatewayWith(address), waits: true, until: 20},
		"and then goes":                               {of: front, gateway: above("front", v1alpha1.AnnotationStatus, status(30)), live: gatewayWith(address)},
		"it says for how long":                        {of: front, gateway: above("front", v1alpha1.AnnotationStatus, status(30), v1alpha1.AnnotationDrainSeconds, "60"), live: gatewayWith(address), waits: true, until: 30},
		"or that it does not":                         {of: front, gateway: above("front", v1alpha1.AnnotationDrainSeconds, "0"), live: gatewayWith(address)},
		"or its policy does":                          {of: front, gateway: above("front", v1alpha1.AnnotationStatus, status(30)), live: gatewayWith(address), policy: 90, waits: true, until: 60},
		"it has the last word":                        {of: front, gateway: above("front", v1alpha1.AnnotationStatus, status(30), v1alpha1.AnnotationDrainSeconds, "10"), live: gatewayWith(address), policy: 90},
		"one that is deleted goes":                    {of: front, gateway: deleted, live: gatewayWith(address)},
		"one that is to be nowhere goes":              {of: front, gateway: above("front", v1alpha1.AnnotationPlacement, ""), live: gatewayWith(address)},
		"a route stays with what it leads to":         {of: web, gateway: above("front"), live: gatewayWith(address), runs: true, waits: true},
		"and no longer":                               {of: web, gateway: above("front"), live: gatewayWith(address)},
		"nor where nobody reaches it":                 {of: web, gateway: above("front"), live: gatewayWith(), runs: true},
		"nor behind a Gateway that waits for nothing": {of: web, gateway: above("front", v1alpha1.AnnotationDrainSeconds, "0"), live: gatewayWith(address), runs: true},
		"nor behind one of somebody else":             {of: web, gateway: above("other"), live: gatewayWith(address), runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			loops := New(Options{
				Above: known{front: test.gateway, web: above("web")}, LogicalCluster: func() string { return "logical" }, Clock: testingclock.NewFakePassiveClock(noon),
				Drain: func(key Key, of *metav1.PartialObjectMetadata) (time.Duration, bool) {
					return time.Duration(test.policy) * time.Second, test.policy > 0 && key == front && of.Name == "front"
				},
				Behind: func(_ string, services []cache.ObjectName) addresses.Behind {
					return addresses.Behind{Runs: test.runs && fmt.Sprint(services) == "[shop/web]"}
				},
			})
			l, _ := loopOf(t)
			l.Loops = loops
			gateway := l.holds(t, GatewayResource, "front", "uid-of-front", test.live)
			route := l.holds(t, httpRoutes, "web", "uid-of-web", routeOf("front", "web"))
			seen := look{key: test.of, kind: gizmos, known: true, concerned: true, watch: &watch{}, arrived: true, above: test.gateway, live: gateway}
			if test.of == web {
				seen.above, seen.live = above("web"), route
			}
			p := l.plan(seen)
			if want := map[bool]steps.Task{true: steps.Nothing, false: steps.Delete}[test.waits]; p.Task != want {
				t.Fatalf("%s (%s), want %s", p.Task, p.Why, want)
			}
			if want := noon.Add(time.Duration(test.until) * time.Second); test.until > 0 && !p.Waits.Until.Equal(want) || test.until == 0 && !p.Waits.Until.IsZero() {
				t.Errorf("until %s, want %d s", p.Waits.Until, test.until)
			}
		})
	}
}

// What runs the pods of a custom kind is kept for users outside as what runs those of a built-in one.
func TestAWorkloadThatLeavesIsKeptAsLongAsUsersReachIt(t *testing.T) {
	noon := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	above := func(decision string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "above", Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision}}}
	}
	deleted := above(`{"west":{"replicas":1}}`)
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	left := &moves.Address{Address: "192.0.2.1", Of: "Service web", Withdrawn: noon.Add(-10 * time.Second), Until: noon.Add(20 * time.Second)}
	for name, test := range map[string]struct {
		above   *metav1.PartialObjectMetadata
		wanted  bool
		absent  bool // whether others have it already
		address *moves.Address
		unknown bool
		want    steps.Task
		leaves  bool
		until   time.Time
	}{
		"until its address has left the status": {above: above(`{"west":{"replicas":1}}`), address: &moves.Address{Address: "192.0.2.1", Of: "Service web"}, want: steps.Nothing, leaves: true},
		"and for a while after that":            {above: above(`{"west":{"replicas":1}}`), address: left, want: steps.Nothing, leaves: true, until: left.Until},
		"not without one":                       {above: above(`{"west":{"replicas":1}}`), want: steps.Delete, leaves: true},
		"as long as nobody can tell":            {above: above(`{"west":{"replicas":1}}`), unknown: true, want: steps.Nothing, leaves: true, until: noon.Add(askAgain)},
		"nor asked before it is elsewhere":      {above: above(`{"west":{"replicas":1}}`), absent: true, address: left, want: steps.Nothing},
		"nor when it is to be nowhere":          {above: above(""), address: left, want: steps.Delete},
		"nor when it is deleted":                {above: deleted, address: left, want: steps.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := loopOf(t)
			asked := false
			l.Loops = New(Options{
				LogicalCluster: func() string { return "logical" }, Clock: testingclock.NewFakePassiveClock(noon),
				Kept: func(cluster string, key identity.Key, leaves bool) (*moves.Address, bool) {
					if cluster != "east" || key.Resource.Resource != "gizmos" || key.Resource.Version != "v1" || key.Name != "a" {
						t.Errorf("asked is for %s in %s", key, cluster)
					}
					if asked = leaves; !leaves {
						return nil, true
					}
					return test.address, !test.unknown
				},
			})
			live := l.holds(t, gizmos.Resource, "a", "above", map[string]any{"apiVersion": "example.com/v1", "kind": "Gizmo"})
			kind := gizmos
			kind.Paths = &projection.PodPaths{}
			seen := look{key: gizmo, kind: kind, known: true, concerned: true, watch: &watch{version: "v1"}, arrived: !test.absent, above: test.above, live: live}
			l.keep(&seen)
			p := l.plan(seen)
			if p.Task != test.want || asked != test.leaves || !p.Waits.Until.Equal(test.until) {
				t.Errorf("%s (%s) until %s, leaves %t; want %s until %s, %t", p.Task, p.Why, p.Waits.Until, asked, test.want, test.until, test.leaves)
			}
		})
	}
}

func TestGatewaysLeadToTheServicesOfTheirRoutes(t *testing.T) {
	front := Key{GatewayResource, "shop", "front"}
	l, _ := loopOf(t)
	l.Above = known{front: {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", UID: "uid-of-front"}}}
	l.byCluster["east"] = l
	if got := l.Gateways("east"); len(got) > 0 {
		t.Errorf("a cluster without any has %+v", got)
	}
	l.holds(t, GatewayResource, "front", "uid-of-front", gatewayWith(map[string]any{"value": "192.0.2.2"}, map[string]any{"value": "192.0.2.1"}))
	l.holds(t, GatewayResource, "old", "uid-of-old", gatewayWith())
	l.holds(t, httpRoutes, "web", "uid-of-web", routeOf("front", "web", "api"))
	l.holds(t, httpRoutes, "other", "uid-of-other", routeOf("old", "old"))
	foreign := l.holds(t, httpRoutes, "odd", "uid-of-odd", map[string]any{"spec": map[string]any{
		"parentRefs": []any{
			"x", map[string]any{"name": "front", "kind": "Service", "group": ""}, map[string]any{"name": "front", "namespace": "shop", "sectionName": "https"}, map[string]any{"name": int64(3)},
		},
		"rules": []any{"x", map[string]any{"backendRefs": "x"}, map[string]any{"backendRefs": []any{
			map[string]any{"name": "db", "namespace": "data"}, map[string]any{"name": "bucket", "group": "example.com", "kind": "Bucket"},
		}}},
	}})
	if got := fmt.Sprint(parents(foreign), ledTo(foreign)); got != "[shop/front] [data/db]" {
		t.Errorf("an odd route has %s", got)
	}
	got := l.Gateways("east")
	if len(got) != 1 || got[0].Above.Name != "front" || fmt.Sprint(got[0].Published) != "[192.0.2.1 192.0.2.2]" {
		t.Fatalf("%+v, want the one that the logical cluster has", got)
	}
	services := map[string]bool{}
	for _, name := range got[0].Services {
		services[name.String()] = true
	}
	if len(services) != 3 || !services["shop/web"] || !services["shop/api"] || !services["data/db"] {
		t.Errorf("it leads to %v", got[0].Services)
	}
	if len(l.Gateways("west")) > 0 || parents(nil) != nil || ledTo(nil) != nil {
		t.Error("nothing has something")
	}
}
