package releases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const webService = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`

// labelled is the Deployment whose pods have the label of the primary.
func labelled(image string) string {
	return strings.Replace(deploymentOf(image), `"labels":{"app":"web"}`, `"labels":{"app":"web","delivery.manifold.dev/variant":"primary"}`, 1)
}

// sharedOut is an application whose requests are shared out while somebody is asked to agree.
func sharedOut(method v1alpha1.TrafficMethod, there, back string) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		pipeline(
			stage(v1alpha1.StageCanaryRollout, "canary", `{"replicas":1,"perCluster":true}`), stage(v1alpha1.StageTrafficRouting, "there", there),
			stage(v1alpha1.StageWaitApproval, "agree", ""), stage(v1alpha1.StagePrimaryRollout, "primary", ""),
			stage(v1alpha1.StageTrafficRouting, "back", back), stage(v1alpha1.StageCanaryClean, "clean", ""),
		)(app)
		app.Spec.Traffic = &v1alpha1.Traffic{Method: method, DrainSeconds: ptr.To(int32(30))}
		if method == v1alpha1.TrafficHTTPRoute {
			app.Spec.Traffic.Name = "front"
		}
	}
}

// fronted has an HTTPRoute that goes to clusters.
func (w *world) fronted(decision, backends string) { w.routed(decision, routeOf(backends)) }

// routed has a route that goes to clusters.
func (w *world) routed(decision, manifest string) {
	w.Helper()
	w.front = &unstructured.Unstructured{}
	if err := w.front.UnmarshalJSON([]byte(manifest)); err != nil {
		w.Fatal(err)
	}
	w.front.SetNamespace("shop")
	w.front.SetUID("front")
	w.annotate(w.front, manifold.AnnotationPlacement, decision)
	w.front.SetResourceVersion(w.next())
}

// routeOf and meshOf are an HTTPRoute with some backends, and a VirtualService with some destinations.
func routeOf(backends string) string {
	return `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"front"},"spec":{"rules":[{"backendRefs":` + backends + `}]}}`
}

func meshOf(destinations string) string {
	return `{"apiVersion":"networking.istio.io/v1alpha3","kind":"VirtualService","metadata":{"name":"front"},"spec":{"http":[{"route":` + destinations + `}]}}`
}

// pinnedTo is a manifest that says where it goes.
func pinnedTo(clusters, manifest string) string {
	return strings.Replace(manifest, `"metadata":{`, `"metadata":{"annotations":{"manifold.dev/clusters":"`+clusters+`"},`, 1)
}

const everywhere = `{"east":{"replicas":1},"west":{"replicas":1}}`

// begun has an application whose first revision is released, and the next one on its way. More are manifests that both have.
func (w *world) begun(change func(*v1alpha1.Application), more ...string) {
	w.Helper()
	w.given(change, both...)
	w.revise(1, both, append([]string{webService, labelled("one")}, more...)...)
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.settled()
	w.revise(2, both, append([]string{webService, labelled("two")}, more...)...)
	w.asks("web-b", "web-v2", nil)
}

func (w *world) agreed() {
	w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: "agree", Attempt: 1})
}

// held is what a cluster is told to hold otherwise of the Service in front and of the route.
func (w *world) held(cluster string) string {
	w.Helper()
	service, _, _ := w.informer(corev1.SchemeGroupVersion.WithResource("services")).GetIndexer().GetByKey("shop/web")
	out := fmt.Sprint(projection.RoutesOf(service.(*corev1.Service))[cluster]["/spec/selector/delivery.manifold.dev~1variant"].Is)
	if w.front == nil {
		return out
	}
	fields := projection.RoutesOf(w.front)[cluster]
	refs, _ := fields["/spec/rules/0/backendRefs"].Is.([]any)
	for _, ref := range refs {
		out += fmt.Sprintf(" %v:%v", ref.(map[string]any)["name"], ref.(map[string]any)["weight"])
	}
	routes, _ := fields["/spec/http/0/route"].Is.([]any)
	for _, route := range routes {
		to := route.(map[string]any)["destination"].(map[string]any)
		name := fmt.Sprint(to["host"])
		if to["subset"] != nil {
			name += fmt.Sprintf("/%v", to["subset"])
		}
		out += fmt.Sprintf(" %s:%v", name, route.(map[string]any)["weight"])
	}
	return out
}

func (w *world) holds(want string) {
	w.Helper()
	for _, cluster := range both {
		if got := w.held(cluster); got != want {
			w.Errorf("cluster %s holds %s, want %s", cluster, got, want)
		}
	}
}

func (w *world) phase(id string) v1alpha1.StageStatus {
	for _, stage := range w.release("web-b").Status.Stages {
		if stage.ID == id {
			return stage
		}
	}
	return v1alpha1.StageStatus{}
}

func TestWeightsOfARouteAreSetAndTakenBack(t *testing.T) {
	const (
		backends = `[{"name":"web","port":80}]`
		services = `[{"destination":{"host":"web"}}]`
		subsets  = `[{"destination":{"host":"web","subset":"primary"},"weight":100},{"destination":{"host":"web","subset":"canary"},"weight":0}]`

		byServices = "primary web:80 web-canary:20"
		bySubsets  = "<nil> web/primary:80 web/canary:20"
	)
	for name, test := range map[string]struct {
		traffic v1alpha1.Traffic
		// above is the route that users have written beside the application, and among the one among its manifests, with where that goes.
		above, among, pin string
		// shared is what clusters hold otherwise while the canary has its share, and back once it has none: the Service leads to the primary for as long as
		// there is a canary, unless subsets tell them apart.
		shared, back string
	}{
		"an HTTPRoute": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficHTTPRoute, Name: "front"}, above: routeOf(backends), shared: byServices, back: "primary"},
		"an HTTPRoute among the manifests": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficHTTPRoute, Name: "front"}, among: routeOf(backends), pin: "east,west",
			shared: byServices, back: "primary"},
		"a VirtualService": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Name: "front"}, above: meshOf(services), shared: byServices, back: "primary"},
		"a VirtualService among the manifests": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Name: "front"}, among: meshOf(services), pin: "east,west",
			shared: byServices, back: "primary"},
		"a VirtualService of subsets": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Name: "front", Subsets: true}, above: meshOf(subsets),
			shared: bySubsets, back: "<nil>"},
		"a VirtualService that nobody names": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Subsets: true}, among: meshOf(subsets), pin: "east,west",
			shared: bySubsets, back: "<nil>"},
		"a VirtualService that says itself where it goes": {traffic: v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Subsets: true},
			among: pinnedTo("west,east", meshOf(subsets)), pin: "west,east", shared: bySubsets, back: "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				var more []string
				if test.above != "" {
					w.routed(everywhere, test.above)
				} else {
					more = []string{test.among}
				}
				w.begun(func(app *v1alpha1.Application) {
					sharedOut(test.traffic.Method, `{"canary":20}`, `{"primary":100}`)(app)
					drain := app.Spec.Traffic.DrainSeconds
					app.Spec.Traffic = test.traffic.DeepCopy()
					app.Spec.Traffic.DrainSeconds = drain
				}, more...)
				if got := w.front.GetAnnotations()[manifold.AnnotationClusters]; got != test.pin {
					t.Errorf("the route is sent to %q, want %q", got, test.pin)
				}
				w.waits("web-b", "agree")
				w.holds(test.shared)
				w.settled()
				w.agreed()
				w.waits("web-b", "clean")
				w.holds(test.back)
				began := w.clock.Now()
				if w.runs("web-canary") == "" {
					t.Error("the canary has gone before it was drained")
				}
				w.until("web-b", v1alpha1.ReleaseSucceeded)
				if took := w.clock.Now().Sub(began); took < 25*time.Second {
					t.Errorf("the canary has drained for %s", took)
				}
				w.step()
				w.holds("<nil>")
				if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xtwo west:10xtwo; " {
					t.Errorf("runs %s", got)
				}
				w.settled()
			})
		})
	}
}

func TestAClusterWithoutACanarySendsItNothing(t *testing.T) {
	w := newWorld(t, both...)
	w.fronted(everywhere, `[{"name":"web"}]`)
	w.begun(func(app *v1alpha1.Application) {
		sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":20}`, `{"primary":100}`)(app)
		app.Spec.Pipeline.Stages[0].Targets = []string{"east"}
	})
	w.waits("web-b", "agree")
	if east, west := w.held("east"), w.held("west"); east != "primary web:60 web-canary:40" || west != "<nil>" {
		t.Errorf("east holds %s and west %s: together they are to send 20%%, and west has no canary", east, west)
	}
	// What users write meanwhile is theirs, and the shares go by it.
	if err := unstructured.SetNestedSlice(w.front.Object, []any{
		map[string]any{"name": "new"}, map[string]any{"backendRefs": []any{map[string]any{"name": "web"}}},
	}, "spec", "rules"); err != nil {
		t.Fatal(err)
	}
	w.front.SetResourceVersion(w.next())
	w.step()
	if got := projection.RoutesOf(w.front)["east"]; len(got) != 1 || got["/spec/rules/1/backendRefs"].Is == nil {
		t.Errorf("east holds %v", got)
	}
}

func TestAServiceSwitchesAndSwitchesBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.begun(sharedOut(v1alpha1.TrafficService, `{"all":"canary"}`, `{"all":"primary"}`))
		w.waits("web-b", "there")
		w.waits("web-b", "agree")
		w.holds("canary")
		w.agreed()
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.step()
		w.holds("<nil>")
		w.settled()
	})
}

func TestAStageOfTrafficIsDoneOnceTheClusterSaysSo(t *testing.T) {
	w := newWorld(t, both...)
	w.fronted(everywhere, `[{"name":"web"}]`)
	w.begun(func(app *v1alpha1.Application) {
		sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":20}`, `{"primary":100}`)(app)
		app.Spec.ProgressDeadlineSeconds = ptr.To(int32(3600))
	})
	w.deaf["west"] = true
	w.waits("web-b", "there")
	for range 20 {
		w.step()
	}
	stage := w.phase("there")
	if stage.Phase != v1alpha1.StageRunning || len(stage.Targets) != 2 || stage.Targets[0].Phase != v1alpha1.TargetSucceeded ||
		!strings.Contains(stage.Targets[1].Message, `waiting for cluster "west" to send`) {
		t.Errorf("%+v", stage)
	}
	w.holds("primary web:80 web-canary:20")
	w.deaf["west"] = false
	w.waits("web-b", "agree")
}

func TestARollbackPutsBackTheSharesBeforeTheCanaryGoes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.fronted(everywhere, `[{"name":"web","port":80}]`)
		w.begun(sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":50}`, `{"primary":100}`))
		w.waits("web-b", "agree")
		w.holds("primary web:50 web-canary:50")
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		w.step()
		w.step()
		w.holds("primary")
		if w.runs("web-canary") == "" {
			t.Error("the canary has gone at once")
		}
		w.until("web-b", v1alpha1.ReleaseRolledBack)
		w.step()
		w.holds("<nil>")
		w.settled()
	})
}

func TestARightThatLacksIsSaidBeforeAnyMove(t *testing.T) {
	w := newWorld(t, both...)
	w.fronted(everywhere, `[{"name":"web"}]`)
	w.refuses["HTTPRoute/front"] = apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "front", nil)
	w.begun(sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":10}`, `{"primary":100}`))
	w.until("web-b", v1alpha1.ReleaseRolledBack)
	if got, want := w.phase("there").Message, `share out requests: HTTPRoute/front: httproutes "front" is forbidden`; !strings.Contains(got, want) {
		t.Errorf("stage there says %q, want %s", got, want)
	}
	if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xone west:10xone; " {
		t.Errorf("runs %s", got)
	}
}

func TestACanaryStaysThatStillGetsRequests(t *testing.T) {
	for name, breaks := range map[string]func(*world){
		"because of a right": func(w *world) {
			w.refuses["HTTPRoute/front"] = apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "front", nil)
		},
		"because of the route": func(w *world) {
			unstructured.RemoveNestedField(w.front.Object, "spec", "rules")
			w.front.SetResourceVersion(w.next())
		},
		"because a cluster does not do as it is told": func(w *world) { w.deaf["east"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.fronted(everywhere, `[{"name":"web"}]`)
			w.begun(sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":10}`, `{"primary":100}`))
			w.waits("web-b", "agree")
			breaks(w)
			w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
			for range 100 {
				w.step()
			}
			if got := w.runs("web-canary"); !strings.Contains(got, "east:1xtwo") {
				t.Errorf("east still sends it requests, and runs %q", got)
			}
		})
	}
}

func TestPodsThatCannotBeToldApartAreNotShared(t *testing.T) {
	w := newWorld(t, both...)
	w.fronted(everywhere, `[{"name":"web"}]`)
	w.given(sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":10}`, `{"primary":100}`), both...)
	w.revise(1, both, webService, deploymentOf("one")) // made before anybody shared out requests
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.settled()
	w.revise(2, both, webService, labelled("two"))
	w.asks("web-b", "web-v2", nil)
	release := w.until("web-b", v1alpha1.ReleaseFailed)
	if !strings.Contains(release.Status.Message, "the pods of web-v1, which runs in cluster \"east\", have no label delivery.manifold.dev/variant=primary") || len(w.writes) > 0 {
		t.Errorf("%q, written: %v", release.Status.Message, w.writes)
	}
	w.revise(3, both, webService, labelled("one"))
	w.asks("web-c", "web-v3", nil)
	release = w.until("web-c", v1alpha1.ReleaseSucceeded)
	if release.Status.Plan.Strategy != v1alpha1.StrategyQuickSync {
		t.Errorf("that pods are told apart from now on goes by %s: %s", release.Status.Plan.Strategy, release.Status.Plan.Reason)
	}
}

func TestAStageNeedsAMethod(t *testing.T) {
	for name, test := range map[string]struct {
		traffic *v1alpha1.Traffic
		want    string
	}{
		"nothing":                            {nil, "stage route: spec.traffic: Required value: a stage routes traffic"},
		"a route that belongs to no Gateway": {&v1alpha1.Traffic{Method: v1alpha1.TrafficHTTPRoute, Host: "web.example.com"}, "stage route: spec.traffic.gateways: Required value"},
		"any":                                {&v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Name: "front"}, ""},
		"a route that nobody has written":    {&v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService}, "stage route: spec.traffic.name: Required value: there is no VirtualService"},
	} {
		err := carriedOut(test.traffic, []v1alpha1.Stage{stage("K8S_MULTI_TRAFFIC_ROUTING", "route", "")}, nil)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

// silence has a cluster answer no more, or again.
func (w *world) silence(cluster string, silent bool) {
	w.Helper()
	informer := w.ours.Manifold().V1alpha1().Clusters().Informer()
	found, _, _ := informer.GetIndexer().GetByKey(cluster)
	changed := found.(*manifold.Cluster).DeepCopy()
	answers := metav1.Condition{Type: manifold.ClusterAnswering, Status: metav1.ConditionTrue, Reason: "Answers", LastTransitionTime: metav1.NewTime(w.clock.Now())}
	if silent {
		answers.Status, answers.Reason = metav1.ConditionFalse, "NoAnswer"
	}
	meta.SetStatusCondition(&changed.Status.Conditions, answers)
	w.add(informer, changed)
	w.dead[cluster] = silent
}

// Nobody waits for a cluster that is away when shares are taken back, and it needs no command when it returns.
func TestAClusterThatIsAwayTakesSharesBackWhenItReturns(t *testing.T) {
	for name, test := range map[string]struct {
		method v1alpha1.TrafficMethod
		shared string
	}{
		"weights":         {v1alpha1.TrafficHTTPRoute, "primary web:50 web-canary:50"},
		"a switch":        {v1alpha1.TrafficService, "canary"},
		"numbers of pods": {v1alpha1.TrafficReplicas, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			there := `{"canary":50}`
			if test.method == v1alpha1.TrafficService {
				there = `{"all":"canary"}`
			}
			if test.method == v1alpha1.TrafficHTTPRoute {
				w.fronted(everywhere, `[{"name":"web"}]`)
			}
			w.begun(sharedOut(test.method, there, `{"primary":100}`))
			w.waits("web-b", "agree")
			w.holds(test.shared)
			w.silence("west", true)
			w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
			release := w.until("web-b", v1alpha1.ReleaseRolledBack)
			if message := release.Status.Message; !strings.Contains(message, `cluster "west" does not answer: it follows by itself when it is back`) {
				t.Errorf("it says %q", message)
			}
			w.silence("west", false)
			for range 5 {
				w.step()
			}
			w.holds("<nil>")
			if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xone west:10xone; " {
				t.Errorf("runs %s", got)
			}
			w.settled()
		})
	}
}

// A canary that is cleaned while it has a share gives that up first, and drains.
func TestACanaryIsCleanedWhileItHasAShare(t *testing.T) {
	for name, test := range map[string]struct {
		method v1alpha1.TrafficMethod
		there  string
	}{
		"weights":         {v1alpha1.TrafficHTTPRoute, `{"canary":50}`},
		"a switch":        {v1alpha1.TrafficService, `{"all":"canary"}`},
		"numbers of pods": {v1alpha1.TrafficReplicas, `{"canary":50}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			if test.method == v1alpha1.TrafficHTTPRoute {
				w.fronted(everywhere, `[{"name":"web"}]`)
			}
			w.begun(func(app *v1alpha1.Application) {
				sharedOut(test.method, test.there, `{"primary":100}`)(app)
				app.Spec.Pipeline.Stages = slices.Delete(app.Spec.Pipeline.Stages, 3, 5) // neither a rollout of the primary nor a way back
			})
			w.waits("web-b", "agree")
			w.agreed()
			w.waits("web-b", "clean")
			w.holds("primary")
			began := w.clock.Now()
			w.until("web-b", v1alpha1.ReleaseSucceeded)
			if took := w.clock.Now().Sub(began); took < 25*time.Second {
				t.Errorf("the canary has drained for %s", took)
			}
			w.step()
			w.holds("<nil>")
		})
	}
}

func TestServicesThatCannotBeInFrontAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		services []string
		want     string
	}{
		"no selector":              {[]string{strings.Replace(webService, `"selector":{"app":"web"},`, "", 1)}, "spec.service.name: Invalid value: \"web\": the Service leads to no pods by a selector"},
		"a name elsewhere":         {[]string{strings.Replace(webService, `"spec":{`, `"spec":{"type":"ExternalName","externalName":"web.example.com",`, 1)}, "the Service leads to no pods by a selector"},
		"other pods":               {[]string{strings.Replace(webService, `"app":"web"`, `"app":"api"`, 1)}, "the Service leads to none of the workloads of which copies are made"},
		"two, and nobody says who": {[]string{webService, strings.Replace(webService, `"name":"web"`, `"name":"api"`, 1)}, "spec.service.name: Required value: there are 2 Services among the objects"},
		"none":                     {nil, "spec.service.name: Required value: there is no Service among the objects"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []v1alpha1.TrafficMethod{v1alpha1.TrafficService, v1alpha1.TrafficReplicas} {
				w := newWorld(t, both...)
				w.given(sharedOut(method, `{"all":"canary"}`, `{"primary":100}`), both...)
				w.revise(1, both, append(test.services, labelled("one"))...)
				w.asks("web-a", "web-v1", nil)
				w.until("web-a", v1alpha1.ReleaseSucceeded)
				w.revise(2, both, append(test.services, labelled("two"))...)
				w.asks("web-b", "web-v2", nil)
				w.until("web-b", v1alpha1.ReleaseRolledBack)
				if got := w.phase("there").Message; !strings.Contains(got, test.want) {
					t.Errorf("%s: %q, want %s", method, got, test.want)
				}
			}
		})
	}
}

// One route often leads to several applications. What is set for one of them is for the others to leave alone.
func TestWhatOthersHaveSetInARouteStays(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.fronted(`{"east":{"replicas":1},"west":{"replicas":1},"north":{"replicas":1}}`, `[{"name":"web"}]},{"backendRefs":[{"name":"api"}]`)
		rules, _, _ := unstructured.NestedSlice(w.front.Object, "spec", "rules")
		theirs := projection.Fields{"/spec/rules/1/backendRefs": {
			Of: projection.RouteHash(rules[1].(map[string]any)["backendRefs"]), Is: []any{map[string]any{"name": "api", "weight": int64(70)}, map[string]any{"name": "api-canary", "weight": int64(30)}},
		}}
		w.annotate(w.front, v1alpha1.AnnotationRoutes, projection.Routes{"east": theirs, "north": theirs}.String())
		theirsStay := func(when string) {
			t.Helper()
			for _, cluster := range []string{"east", "north"} {
				if got := projection.RoutesOf(w.front)[cluster]["/spec/rules/1/backendRefs"]; got.Of != theirs["/spec/rules/1/backendRefs"].Of {
					t.Errorf("%s %s holds %v", when, cluster, projection.RoutesOf(w.front)[cluster])
				}
			}
		}
		w.begun(sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":20}`, `{"primary":100}`))
		theirsStay("before")
		w.waits("web-b", "agree")
		w.holds("primary web:80 web-canary:20")
		theirsStay("meanwhile")
		w.settled()
		w.agreed()
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.step()
		w.holds("<nil>")
		theirsStay("afterwards")
		w.settled()
	})
}

// Clusters that are held at the revision of before hold the route as that has it, so their shares are made for that.
func TestARouteThatChangesWithTheReleaseIsSharedOutInClustersThatAreHeld(t *testing.T) {
	route := func(backends string) string {
		return `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"front","annotations":{"manifold.dev/clusters":"east,west"}},` +
			`"spec":{"rules":[{"backendRefs":` + backends + `}]}}`
	}
	each(t, func(t *testing.T, w *world) {
		w.given(func(app *v1alpha1.Application) {
			sharedOut(v1alpha1.TrafficHTTPRoute, `{"canary":20}`, `{"primary":60,"canary":40}`)(app)
			stages := app.Spec.Pipeline.Stages
			stages[3].Targets = []string{"east"} // west is held
			app.Spec.Pipeline.Stages = slices.Insert(stages, 5, stage(v1alpha1.StageWaitApproval, "still", ""))
		}, both...)
		w.revise(1, both, webService, labelled("one"), route(`[{"name":"web","port":80}]`))
		w.asks("web-a", "web-v1", nil)
		w.until("web-a", v1alpha1.ReleaseSucceeded)
		w.settled()
		w.revise(2, both, webService, labelled("two"), route(`[{"name":"web","port":80,"filters":[]}]`))
		w.asks("web-b", "web-v2", nil)
		w.waits("web-b", "agree")
		w.holds("primary web:80 web-canary:20")
		w.agreed()
		w.waits("web-b", "still")
		if got := w.runs("web"); got != "east:10xtwo west:10xone" {
			t.Errorf("runs %s", got)
		}
		w.holds("primary web:60 web-canary:40")
		w.settled()
		for cluster, filtered := range map[string]bool{"east": true, "west": false} {
			refs, _ := projection.RoutesOf(w.front)[cluster]["/spec/rules/0/backendRefs"].Is.([]any)
			for _, ref := range refs {
				if _, has := ref.(map[string]any)["filters"]; has != filtered {
					t.Errorf("cluster %s holds %v", cluster, ref)
				}
			}
		}
	})
}
