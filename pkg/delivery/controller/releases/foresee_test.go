package releases

import (
	"slices"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// by is an application whose requests are shared out as it says, as long as somebody is asked to agree.
func by(of v1alpha1.Traffic, there string) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		sharedOut(of.Method, there, `{"primary":100}`)(app)
		app.Spec.Traffic = of.DeepCopy()
	}
}

// Nobody runs a canary to find out that its requests could not be shared out: what of the route can be told before is, and nothing is applied. What may still come
// is waited for.
func TestARouteThatCannotShareOutRequestsIsToldBeforeAnythingIsApplied(t *testing.T) {
	route, mesh := v1alpha1.Traffic{Method: v1alpha1.TrafficHTTPRoute, Name: "front"}, v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Name: "front"}
	ruled := route
	ruled.Routes = []string{"main"}
	nginx := v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Name: "front", NginxCanary: true}
	good, small := `[{"name":"web"}]`, `[{"name":"web"},{"name":"other"}]`
	for name, test := range map[string]struct {
		traffic v1alpha1.Traffic
		given   func(*world)
		// before and now are what the two revisions have beside the rest, now that of the target west where that has something else.
		before, now, west []string
		phase             v1alpha1.ReleasePhase
		want              string
		mends             func(*world)
	}{
		"there is none": {traffic: route, phase: v1alpha1.ReleasePending, want: `stage there: spec.traffic.name: there is no HTTPRoute "front" in namespace "shop"`,
			mends: func(w *world) { w.fronted(everywhere, good) }},
		"there is no Ingress": {traffic: nginx, phase: v1alpha1.ReleasePending, want: `stage there: spec.traffic.name: there is no Ingress "front" in namespace "shop"`,
			mends: func(w *world) { w.add(w.informer(ingresses), ingressOfUsers(w.T)) }},
		"it does not go to a cluster": {traffic: route, given: func(w *world) { w.fronted(`{"west":{"replicas":1}}`, good) }, phase: v1alpha1.ReleasePending,
			want:  `stage there: cluster "east": spec.traffic.name: HTTPRoute front does not go to the cluster: pin it there by its annotation manifold.dev/clusters`,
			mends: func(w *world) { w.annotate(w.front, manifold.AnnotationPlacement, everywhere) }},
		"it leads elsewhere": {traffic: route, given: func(w *world) { w.fronted(everywhere, `[{"name":"other"}]`) }, phase: v1alpha1.ReleaseFailed,
			want: `stage there: cluster "east": spec.traffic.name: HTTPRoute front: spec.rules: Invalid value: "front": no rule sends requests to Service web`},
		"it has no rule of the name": {traffic: ruled, given: func(w *world) { w.fronted(everywhere, good) }, phase: v1alpha1.ReleaseFailed,
			want: `HTTPRoute front: spec.rules: Invalid value: "front": no rule sends requests to Service web`},
		"its weights are too small": {traffic: route, given: func(w *world) { w.fronted(everywhere, small) }, phase: v1alpha1.ReleaseFailed,
			want: "spec.traffic.name: HTTPRoute front: spec.rules[0].backendRefs: Invalid value: 1: the weights of Service web are too small to give 10% to the canary"},
		"a VirtualService leads elsewhere": {traffic: mesh, given: func(w *world) { w.routed(everywhere, meshOf(`[{"destination":{"host":"web.other"}}]`)) },
			phase: v1alpha1.ReleaseFailed, want: `VirtualService front: spec.http: Invalid value: "front": no rule sends requests to Service web`},
		"one among the manifests has small weights": {traffic: route, before: []string{routeOf(small)}, now: []string{routeOf(small)}, phase: v1alpha1.ReleaseFailed,
			want: "the weights of Service web are too small to give 10% to the canary"},
		"one among the manifests says that it goes elsewhere": {traffic: route, before: []string{pinnedTo("west", routeOf(good))}, now: []string{pinnedTo("west", routeOf(good))},
			phase: v1alpha1.ReleaseFailed, want: `cluster "east": spec.traffic.name: HTTPRoute front does not go to the cluster`},
		"one target alone has it": {traffic: mesh, before: []string{meshOf(`[{"destination":{"host":"web"}}]`)}, west: []string{}, phase: v1alpha1.ReleaseFailed,
			now:  []string{meshOf(`[{"destination":{"host":"web"}}]`)},
			want: `cluster "west": spec.traffic.name: VirtualService front is among the manifests of other targets alone`},
		"it comes with what is released after it": {traffic: route, now: []string{routeOf(good)}, phase: v1alpha1.ReleaseFailed,
			want: "stage there: spec.traffic: the HTTPRoute comes with web-v2, and the stage shares out requests before that is there: release with strategy QuickSync first"},
		"so does one that nobody names": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService}, now: []string{meshOf(`[{"destination":{"host":"web"}}]`)},
			phase: v1alpha1.ReleaseFailed, want: "stage there: spec.traffic: the VirtualService comes with web-v2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			if test.given != nil {
				test.given(w)
			}
			revise := func(number int64, image string, more []string) {
				east := append([]string{webService, labelled(image)}, more...)
				west := slices.Clone(east)
				if test.west != nil {
					west = append([]string{webService, labelled(image)}, test.west...)
				}
				w.reviseEach(number, nil, map[string][]string{"east": east, "west": west})
			}
			w.given(by(test.traffic, `{"canary":10}`), both...)
			revise(1, "one", test.before)
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			w.settled()
			revise(2, "two", test.now)
			w.asks("web-b", "web-v2", nil)
			for range 5 {
				w.step()
			}
			if release := w.release("web-b"); release.Status.Phase != test.phase || !strings.Contains(release.Status.Message, test.want) {
				t.Errorf("%s: %q, want %s: %s", release.Status.Phase, release.Status.Message, test.phase, test.want)
			}
			if len(w.writes) > 0 || w.runs("web-canary") != "" {
				t.Errorf("nothing of it was to be applied, and written are %v", w.writes)
			}
			if test.mends != nil {
				test.mends(w)
				w.waits("web-b", "agree")
			}
		})
	}
}

// A route need not be there, nor go anywhere, before the stage that shares out requests by it: what comes before may bring it.
func TestARouteMayComeBeforeTheStageThatNeedsIt(t *testing.T) {
	mesh := meshOf(`[{"destination":{"host":"web"}}]`)
	first := func(app *v1alpha1.Application) {
		by(v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Name: "front"}, `{"canary":20}`)(app)
		stages := app.Spec.Pipeline.Stages
		primary := stages[3]
		app.Spec.Pipeline.Stages = slices.Insert(slices.Delete(stages, 3, 4), 0, primary)
		app.Spec.Planner = &v1alpha1.Planner{AlwaysUsePipeline: true}
	}
	for name, before := range map[string]bool{"in the first release": false, "in a later one": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.given(first, both...)
				if before {
					w.change(func(app *v1alpha1.Application) { app.Spec.Planner = nil })
					w.revise(1, both, webService, labelled("one"))
					w.asks("web-a", "web-v1", nil)
					w.until("web-a", v1alpha1.ReleaseSucceeded)
				}
				w.revise(2, both, webService, labelled("two"), mesh)
				w.asks("web-b", "web-v2", nil)
				w.waits("web-b", "agree")
				w.holds("primary web:80 web-canary:20")
				if got := w.front.GetAnnotations()[manifold.AnnotationClusters]; got != "east,west" {
					t.Errorf("the route is sent to %q", got)
				}
			})
		})
	}
}

// Nor does a release need a route that shares out nothing, unless it brings it to clusters.
func TestARouteIsNotAskedForWhereNothingIsSharedOut(t *testing.T) {
	w := newWorld(t, both...)
	w.begun(by(v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Name: "front"}, `{"canary":20}`))
	for range 3 {
		w.step()
	}
	if got := w.release("web-b").Status; got.Phase != v1alpha1.ReleasePending {
		t.Errorf("by the pipeline it is %s: %s", got.Phase, got.Message)
	}
	w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel})
	w.asks("web-c", "web-v2", func(release *v1alpha1.Release) { release.Spec.Strategy = v1alpha1.StrategyQuickSync })
	w.until("web-c", v1alpha1.ReleaseSucceeded)

	w.serves("west", "Deployment.v1.apps")
	w.revise(3, both, webService, labelled("two"), meshOf(`[{"destination":{"host":"web"}}]`))
	w.asks("web-d", "web-v3", nil)
	w.step()
	if got := w.release("web-d").Status; got.Phase != v1alpha1.ReleasePending || got.Plan != nil || !strings.Contains(got.Message, `kind VirtualService.networking.istio.io is not served by cluster "west"`) {
		t.Errorf("that brings it, it is %s: %s", got.Phase, got.Message)
	}
	w.serves("west", "Deployment.v1.apps", "VirtualService.v1.networking.istio.io")
	w.until("web-d", v1alpha1.ReleaseSucceeded)
}
