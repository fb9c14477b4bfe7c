package syncer

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// balanced is a Service of type LoadBalancer that selects app=<name>.
func balanced(name string, annotations ...string) *corev1.Service {
	out := service(name, map[string]string{"app": name})
	out.Spec.Type = corev1.ServiceTypeLoadBalancer
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, annotations[i], annotations[i+1])
	}
	return out
}

// asHeld is what a cluster holds of an object above.
func asHeld[T projection.Object](above T) T {
	out := above.DeepCopyObject().(T)
	out.SetUID(above.GetUID() + "-below")
	out.SetLabels(map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster})
	out.SetAnnotations(map[string]string{
		v1alpha1.AnnotationNamespace: above.GetNamespace(), v1alpha1.AnnotationName: above.GetName(), v1alpha1.AnnotationUID: string(above.GetUID()),
		v1alpha1.AnnotationProjection: "hash",
	})
	return out
}

// addressed is what a cluster holds of a Service, with an address.
func addressed(above *corev1.Service, ip string) *corev1.Service {
	out := asHeld(above)
	out.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	return out
}

func TestTheLastReplicasStayBehindAddresses(t *testing.T) {
	noon := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	ago := func(seconds int) string {
		return `{"east":{"withdrawn":"` + noon.Add(-time.Duration(seconds)*time.Second).Format(time.RFC3339) + `"}}`
	}
	app := deployment("web", `{"west":{"replicas":3}}`)
	lb := balanced("web")
	led := ingress("front", "web")
	ledBelow := asHeld(led)
	ledBelow.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: "east.example"}}
	deleted := balanced("web")
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	another := deployment("also", `{"east":{"replicas":1}}`)
	another.Spec.Template.Labels = app.Spec.Template.Labels
	for name, test := range map[string]struct {
		above  []projection.Object
		below  []projection.Object // in east
		policy string              // how long the policy drains
		want   string              // in the reason for which they stay; "" if they go
		until  int                 // seconds from noon, 0 for no time
	}{
		"no Service is there":                   {},
		"a Service without an address":          {above: []projection.Object{lb}, below: []projection.Object{asHeld(lb)}},
		"a Service with one":                    {above: []projection.Object{lb}, below: []projection.Object{addressed(lb, "192.0.2.1")}, want: "address 192.0.2.1 of Service web has left"},
		"one that is not of that type":          {above: []projection.Object{service("web", map[string]string{"app": "web"})}, below: []projection.Object{addressed(service("web", nil), "192.0.2.1")}},
		"what is no address":                    {above: []projection.Object{lb}, below: []projection.Object{addressed(lb, "1.2.3")}},
		"a Service of something else":           {above: []projection.Object{balanced("api")}, below: []projection.Object{addressed(balanced("api"), "192.0.2.1")}},
		"a Service of somebody else":            {above: []projection.Object{lb}, below: []projection.Object{func() *corev1.Service { s := addressed(lb, "192.0.2.1"); s.Labels = nil; return s }()}},
		"a Service that is deleted":             {above: []projection.Object{deleted}, below: []projection.Object{addressed(deleted, "192.0.2.1")}},
		"other replicas behind it stay":         {above: []projection.Object{lb, another}, below: []projection.Object{addressed(lb, "192.0.2.1")}},
		"an Ingress that leads to its Service":  {above: []projection.Object{service("web", app.Spec.Template.Labels), led}, below: []projection.Object{ledBelow}, want: "address east.example of Ingress front"},
		"an Ingress that leads somewhere else":  {above: []projection.Object{service("web", app.Spec.Template.Labels), ingress("front", "api")}, below: []projection.Object{ledBelow}},
		"an address that has just left":         {above: []projection.Object{balanced("web", v1alpha1.AnnotationStatus, ago(12))}, below: []projection.Object{addressed(lb, "192.0.2.1")}, want: "left the status at 11:59:48 UTC", until: 18},
		"one that has left long enough":         {above: []projection.Object{balanced("web", v1alpha1.AnnotationStatus, ago(30))}, below: []projection.Object{addressed(lb, "192.0.2.1")}},
		"a Service that says for how long":      {above: []projection.Object{balanced("web", v1alpha1.AnnotationStatus, ago(30), v1alpha1.AnnotationDrainSeconds, "90")}, below: []projection.Object{addressed(lb, "192.0.2.1")}, want: "until 12:01:00 UTC", until: 60},
		"one that does not want it":             {above: []projection.Object{balanced("web", v1alpha1.AnnotationDrainSeconds, "0")}, below: []projection.Object{addressed(lb, "192.0.2.1")}},
		"what it says wins over the policy":     {above: []projection.Object{balanced("web", v1alpha1.AnnotationStatus, ago(10), v1alpha1.AnnotationDrainSeconds, "20")}, below: []projection.Object{addressed(lb, "192.0.2.1")}, policy: "60s", want: "until 12:00:10 UTC", until: 10},
		"a policy that says for how long":       {above: []projection.Object{balanced("web", v1alpha1.AnnotationStatus, ago(30))}, below: []projection.Object{addressed(lb, "192.0.2.1")}, policy: "60s", want: "until 12:00:30 UTC", until: 30},
		"a policy that does not want it":        {above: []projection.Object{lb}, below: []projection.Object{addressed(lb, "192.0.2.1")}, policy: "0s"},
		"a time that lies ahead":                {above: []projection.Object{balanced("web", v1alpha1.AnnotationStatus, ago(-3600))}, below: []projection.Object{addressed(lb, "192.0.2.1")}, want: "until 12:00:30 UTC", until: 30},
		"one that waits for another to succeed": {above: []projection.Object{balanced("web", v1alpha1.AnnotationStatus, `{"east":{"alone":"2026-02-02T11:59:00Z"}}`)}, below: []projection.Object{addressed(lb, "192.0.2.1")}, want: "at most until 12:04:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, slices.Concat([]projection.Object{app}, test.above)...)
			if test.policy != "" {
				drain, err := time.ParseDuration(test.policy)
				if err != nil {
					t.Fatal(err)
				}
				u.outside.Drain = func(projection.Kind, projection.Object) (time.Duration, bool) { return drain, true }
			}
			east := attach(t, u, "east", slices.Concat([]projection.Object{projected(app, 2, 2)}, test.below)...)
			attach(t, u, "west", projected(app, 3, 3))
			east.addresses.Clock = testingclock.NewFakePassiveClock(noon)
			step := east.next(app)
			if test.want == "" {
				if !step.None {
					t.Fatalf("they stay: %+v", step)
				}
				return
			}
			if step.Share.Replicas != 2 || !step.Addressed || !strings.Contains(step.Reason, test.want) {
				t.Errorf("%+v, want 2 replicas for %q", step, test.want)
			}
			if want := noon.Add(time.Duration(test.until) * time.Second); test.until > 0 && !step.Until.Equal(want) || test.until == 0 && !step.Until.IsZero() {
				t.Errorf("until %s, want %d s", step.Until, test.until)
			}
		})
	}
}

func TestWhoseAddressesAreToLeaveIsReported(t *testing.T) {
	lb, serviceKind := balanced("web"), identity.Services
	key := identity.Key{Resource: serviceKind, Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		decision     string
		other        *corev1.Service // in the place of the Service that selects the workload
		keeps        bool            // east keeps its last replicas for the address
		leaves, asks bool
	}{
		"where the workload stays, its addresses stay":      {decision: `{"east":{"replicas":1},"west":{"replicas":2}}`},
		"where it leaves, they are to leave in the end":     {decision: `{"west":{"replicas":3}}`, leaves: true},
		"and now, if only they keep the last replicas":      {decision: `{"west":{"replicas":3}}`, keeps: true, leaves: true, asks: true},
		"a share of none is none":                           {decision: `{"east":{"replicas":0},"west":{"replicas":3}}`, leaves: true},
		"a Service of no workload is nobody's to take away": {decision: `{"west":{"replicas":3}}`, other: balanced("api")},
	} {
		t.Run(name, func(t *testing.T) {
			app, web := deployment("web", test.decision), lb
			if test.other != nil {
				web = test.other.DeepCopy()
				web.Name, web.UID = lb.Name, lb.UID
			}
			u := newUpstream(t, app, web)
			east := attach(t, u, "east", projected(app, 2, 2), addressed(web, "192.0.2.1"))
			if test.keeps {
				st := east.states.Of(keyOfKind(t, app))
				st.Held, st.Addressed = true, true
				east.states.Set(keyOfKind(t, app), st)
			}
			var report summary.Report
			report.Leaves, report.Asks = east.addresses.Leaving(kindOf(t, keyOfKind(t, web)), web)
			if told, known := east.reports.Report(key, web); known && told.Live != nil {
				report = told
			}
			if report.Leaves != test.leaves || report.Asks != test.asks {
				t.Errorf("leaves %t, asks %t, want %t and %t", report.Leaves, report.Asks, test.leaves, test.asks)
			}
		})
	}
}

// Whoever keeps replicas for an address looks again when that changes above or below, and at no other time.
func TestWhoKeepsReplicasForAddressesIsWoken(t *testing.T) {
	app, lb := deployment("web", `{"west":{"replicas":3}}`), balanced("web")
	u := newUpstream(t, app, lb)
	east := attach(t, u, "east", projected(app, 2, 2), addressed(lb, "192.0.2.1"))
	key := keyOfKind(t, app)
	handler := u.router.Addresses()
	withdrawn := balanced("web", v1alpha1.AnnotationStatus, `{"east":{"withdrawn":"2026-02-02T12:00:00Z"}}`)

	handler.OnUpdate(lb, withdrawn)
	if got := east.enqueued(); len(got) > 0 {
		t.Errorf("%q is looked at though nothing is kept", got)
	}
	st := east.states.Of(key)
	st.Addressed = true
	east.states.Set(key, st)
	for name, happens := range map[string]func(){
		"the address leaves the status":   func() { handler.OnUpdate(lb, withdrawn) },
		"another time to drain":           func() { handler.OnUpdate(lb, balanced("web", v1alpha1.AnnotationDrainSeconds, "5")) },
		"the Service is gone":             func() { handler.OnDelete(lb) },
		"the cluster has other addresses": func() { east.changed(identity.Key{Resource: identity.Services, Namespace: "shop", Name: "web"}, true) },
		"the cluster has other ingresses": func() { east.changed(identity.Key{Resource: identity.Ingresses, Namespace: "shop", Name: "web"}, true) },
	} {
		happens()
		if got := east.enqueued(); !slices.Equal(got, []string{key.String()}) {
			t.Errorf("%s: %q is looked at", name, got)
		}
	}
	for name, happens := range map[string]func(){
		"nothing that matters": func() { handler.OnUpdate(lb, lb) },
		"a change of another kind": func() {
			east.changed(identity.Key{Resource: identity.ConfigMaps, Namespace: "shop", Name: "web"}, true)
		},
		"one in another namespace": func() { east.changed(identity.Key{Resource: identity.Services, Namespace: "other", Name: "web"}, true) },
	} {
		happens()
		if got := east.enqueued(); len(got) > 0 {
			t.Errorf("%s: %q is looked at", name, got)
		}
	}
	east.states.Set(key, east.states.Of(key)) // as it is
	st.Addressed = false
	east.states.Set(key, st)
	handler.OnUpdate(lb, withdrawn)
	if got := east.enqueued(); len(got) > 0 {
		t.Errorf("%q is looked at though nothing is kept any more", got)
	}
}

func TestAnAddressIsServedOnceAnythingBehindItIsReadyInItsCluster(t *testing.T) {
	lb := balanced("web")
	for name, test := range map[string]struct {
		above []projection.Object
		below []projection.Object
		want  bool // unserved
	}{
		"what it leads to is not there yet": {above: objects(deployment("web", toEast)), want: true},
		"nothing of it is ready":            {above: objects(deployment("web", toEast)), below: objects(projected(deployment("web", toEast), 2, 0)), want: true},
		"one is":                            {above: objects(deployment("web", toEast)), below: objects(projected(deployment("web", toEast), 2, 1))},
		"nobody knows what it leads to":     {},
	} {
		t.Run(name, func(t *testing.T) {
			front := ingress("front", "web")
			frontThere := asHeld(front)
			frontThere.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
			u := newUpstream(t, append(test.above, lb, front)...)
			east := attach(t, u, "east", append(test.below, addressed(lb, "192.0.2.1"), frontThere)...)
			for _, above := range objects(lb, front) {
				report, known := east.reports.Report(keyOfKind(t, above), above)
				if !known || report.Unserved != test.want {
					t.Errorf("%T: unserved: %t (known: %t), want %t", above, report.Unserved, known, test.want)
				}
			}
		})
	}
}

// A cluster of a network is led to the pods of the others as long as it is to have none itself.
func TestAGatewayIsServedOnceAnythingBehindItIsReadyWhereItLeads(t *testing.T) {
	other := deployment("api", toEast)
	for name, test := range map[string]struct {
		above    []projection.Object
		below    []projection.Object // in east
		services []string
		meshed   bool
		want     bool // unserved
	}{
		"what it leads to is not there yet":    {above: objects(deployment("web", toEast)), services: []string{"web"}, want: true},
		"nothing of it is ready":               {above: objects(deployment("web", toEast)), below: objects(projected(deployment("web", toEast), 2, 0)), services: []string{"web"}, want: true},
		"one is":                               {above: objects(deployment("web", toEast)), below: objects(projected(deployment("web", toEast), 2, 1)), services: []string{"web"}},
		"something else behind it is":          {above: objects(deployment("web", toEast), other), below: objects(projected(other, 1, 1)), services: []string{"web", "api"}},
		"it runs elsewhere alone":              {above: objects(deployment("web", toWest)), services: []string{"web"}, want: true},
		"from where pods of a network serve":   {above: objects(deployment("web", toWest)), services: []string{"web"}, meshed: true},
		"those of a network do not yet, or so": {above: objects(deployment("web", toEast)), services: []string{"web"}, meshed: true, want: true},
		"nobody knows what it leads to":        {services: []string{"web", "none"}},
		"no route leads from it":               {above: objects(deployment("web", toEast))},
	} {
		t.Run(name, func(t *testing.T) {
			web, api := service("web", map[string]string{"app": "web"}), service("api", map[string]string{"app": "api"})
			u := newUpstream(t, append(test.above, web, api)...)
			if test.meshed {
				meshed(u, "east", "west")
			}
			attach(t, u, "east", test.below...)
			var led []cache.ObjectName
			for _, name := range test.services {
				led = append(led, cache.ObjectName{Namespace: "shop", Name: name})
			}
			if got := u.Behind("east", led); got.Unserved != test.want {
				t.Errorf("%+v, want unserved %t", got, test.want)
			}
		})
	}
}

// The status of a Service is looked at again when a cluster comes to wait for it, and when it does not any more.
func TestServicesAreToldWhoWaitsForThem(t *testing.T) {
	app, lb := deployment("web", `{"west":{"replicas":3}}`), balanced("web")
	u := newUpstream(t, app, lb, ingress("front", "web"))
	east := attach(t, u, "east", projected(app, 2, 2), addressed(lb, "192.0.2.1"))
	kind, st := kindOf(t, keyOfKind(t, app)), east.states.Of(keyOfKind(t, app))
	told := func() (out []string) {
		for _, c := range east.changes {
			if c.key.Resource != identity.Deployments {
				out = append(out, c.key.String())
			}
		}
		east.changes = nil
		slices.Sort(out)
		return out
	}
	want := []string{"ingresses shop/front", "services shop/web"}
	st.Held, st.Addressed = true, true
	east.done(keyOfKind(t, app), kind, st)
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("%q is looked at when it comes to wait, want %q", got, want)
	}
	east.done(keyOfKind(t, app), kind, st)
	if got := told(); len(got) > 0 {
		t.Errorf("%q is looked at while it waits", got)
	}
	st.Held, st.Addressed = false, false
	east.done(keyOfKind(t, app), kind, st)
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("%q is looked at when it waits no longer, want %q", got, want)
	}
}

// The loops of custom kinds ask whether an address keeps a workload, and those that lead to it are told.
func TestAWorkloadOfACustomKindStaysBehindAddresses(t *testing.T) {
	noon := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	lb := balanced("web")
	u := newUpstream(t, lb)
	above, _ := rollout(`{"west":{"replicas":2}}`, `{"east":{"generation":1},"west":{"generation":1}}`)
	withRollouts(t, u, above)
	key := identity.KeyOf(rollouts, above)
	if _, known := u.CustomKept("east", key, true); known {
		t.Error("of a cluster that is not connected it is known")
	}
	east := attach(t, u, "east", addressed(lb, "192.0.2.1"))
	west := attach(t, u, "west", addressed(lb, "192.0.2.2"))
	east.addresses.Clock, west.addresses.Clock = testingclock.NewFakePassiveClock(noon), testingclock.NewFakePassiveClock(noon)
	asks := func() (leaves, asks bool) { return east.addresses.Leaving(kindOf(t, keyOfKind(t, lb)), lb) }
	if leaves, asks := asks(); !leaves || asks {
		t.Errorf("before it is to go it leaves %t, and asks %t", leaves, asks)
	}
	address, known := u.CustomKept("east", key, true)
	if !known || address == nil || address.Address != "192.0.2.1" || address.Of != "Service web" {
		t.Fatalf("kept for %+v (%t)", address, known)
	}
	if leaves, asks := asks(); !leaves || !asks {
		t.Errorf("the Service is told that it leaves %t, and that it is asked %t", leaves, asks)
	}
	east.enqueued()
	u.router.LookAtAddressed("shop")
	if got := east.enqueued(); !slices.Contains(got, key.String()) {
		t.Errorf("once the address has left %q are looked at", got)
	}
	if behind := u.Behind("east", []cache.ObjectName{{Namespace: "shop", Name: "web"}}); behind != (addresses.Behind{Any: true, Runs: true, Asks: true}) {
		t.Errorf("behind a Gateway is %+v", behind)
	}
	if address, known := u.CustomKept("west", key, false); address != nil || !known {
		t.Errorf("where it stays it is kept for %+v", address)
	}
	u.CustomKept("east", key, false)
	if _, asks := asks(); asks || len(east.states.Known()) > 0 {
		t.Errorf("once it is gone it still asks %t, and known is %v", asks, east.states.Known())
	}
}

// Gateways keep the last replicas of what their routes lead to, as Services with addresses of their own do.
func TestTheLastReplicasStayBehindGateways(t *testing.T) {
	noon := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	app, web := deployment("web", `{"west":{"replicas":3}}`), service("web", map[string]string{"app": "web"})
	gateway := func(published []string, services []string, annotations ...string) addresses.Gateway {
		above := &metav1.PartialObjectMetadata{ObjectMeta: objectMeta("front")}
		for i := 0; i < len(annotations); i += 2 {
			metav1.SetMetaDataAnnotation(&above.ObjectMeta, annotations[i], annotations[i+1])
		}
		out := addresses.Gateway{Above: above, Published: published}
		for _, name := range services {
			out.Services = append(out.Services, cache.ObjectName{Namespace: "shop", Name: name})
		}
		return out
	}
	one := []string{"192.0.2.1"}
	for name, test := range map[string]struct {
		gateway addresses.Gateway
		want    string // in the reason for which they stay; "" if they go
	}{
		"one that leads to them":          {gateway(one, []string{"api", "web"}), "until address 192.0.2.1 of Gateway front has left the status"},
		"one without an address":          {gateway(nil, []string{"web"}), ""},
		"one that leads somewhere else":   {gateway(one, []string{"api"}), ""},
		"one that does not want it":       {gateway(one, []string{"web"}, v1alpha1.AnnotationDrainSeconds, "0"), ""},
		"one whose address has left":      {gateway(one, []string{"web"}, v1alpha1.AnnotationStatus, `{"east":{"withdrawn":"2026-02-02T11:59:50Z"}}`), "left the status at 11:59:50 UTC"},
		"one whose address has left long": {gateway(one, []string{"web"}, v1alpha1.AnnotationStatus, `{"east":{"withdrawn":"2026-02-02T11:59:30Z"}}`), ""},
		"one that waits for a successor":  {gateway(one, []string{"web"}, v1alpha1.AnnotationStatus, `{"east":{"alone":"2026-02-02T11:59:30Z"}}`), "at most until 12:04:30 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, app, web)
			u.outside.Gateways = func(cluster string) []addresses.Gateway {
				if cluster != "east" {
					return nil
				}
				return []addresses.Gateway{test.gateway}
			}
			east := attach(t, u, "east", projected(app, 2, 2), asHeld(web))
			attach(t, u, "west", projected(app, 3, 3))
			east.addresses.Clock = testingclock.NewFakePassiveClock(noon)
			step := east.next(app)
			if test.want == "" && !step.None {
				t.Errorf("they stay: %+v", step)
			}
			if test.want != "" && (step.Share.Replicas != 2 || !step.Addressed || !strings.Contains(step.Reason, test.want)) {
				t.Errorf("%+v, want 2 replicas for %q", step, test.want)
			}
		})
	}
}

// What runs behind the Services of a Gateway is told of each cluster, and whoever keeps replicas for its sake is woken.
func TestWhatRunsBehindAGatewayIsTold(t *testing.T) {
	app, web := deployment("web", `{"west":{"replicas":3}}`), service("web", map[string]string{"app": "web"})
	u := newUpstream(t, app, web)
	var told []string
	u.outside.GatewaysChanged = func(cluster string) { told = append(told, cluster) }
	services := []cache.ObjectName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "none"}}
	if got := u.Behind("east", services); got != (addresses.Behind{Runs: true}) {
		t.Errorf("of a cluster that is not connected %+v is told", got)
	}
	east := attach(t, u, "east", projected(app, 2, 2))
	attach(t, u, "west")
	if got, want := u.Behind("east", services), (addresses.Behind{Any: true, Runs: true}); got != want {
		t.Errorf("east: %+v, want %+v", got, want)
	}
	if got, want := u.Behind("west", services), (addresses.Behind{Any: true, Stays: true, Unserved: true}); got != want {
		t.Errorf("west: %+v, want %+v", got, want)
	}
	key := keyOfKind(t, app)
	st := east.states.Of(key)
	st.Addressed = true
	east.done(key, kindOf(t, key), st)
	if got, want := u.Behind("east", services), (addresses.Behind{Any: true, Runs: true, Asks: true}); got != want {
		t.Errorf("east asks: %+v, want %+v", got, want)
	}
	if !slices.Equal(told, []string{"east"}) {
		t.Errorf("%q is told of", told)
	}
	u.AddressesChanged()
	if got := east.enqueued(); !slices.Equal(got, []string{key.String()}) {
		t.Errorf("%q is looked at", got)
	}
	told = nil
	east.done(key, kindOf(t, key), st)
	if len(told) > 0 {
		t.Errorf("%q is told of again", told)
	}
	east.done(key, kindOf(t, key), states.State{})
	if !slices.Equal(told, []string{"east"}) {
		t.Errorf("%q is told of when it is deleted", told)
	}

	// The cluster shows it for a while more, and a route stays so long.
	told = nil
	if err := east.below.Stores[deploymentResource].Delete(projected(app, 2, 2)); err != nil {
		t.Fatal(err)
	}
	must(t, east.sync(t.Context(), key))
	if got := u.Behind("east", services); !slices.Equal(told, []string{"east"}) || got.Runs {
		t.Errorf("%q is told of when it has gone, and of east %+v", told, got)
	}
}
