package releases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// forHost is an application for whose host a route is made.
func forHost(method v1alpha1.TrafficMethod, there string) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		sharedOut(method, there, `{"primary":100}`)(app)
		app.Spec.Traffic.Name, app.Spec.Traffic.Host = "", "web.example.com"
		if method == v1alpha1.TrafficHTTPRoute {
			app.Spec.Traffic.Gateways = []v1alpha1.GatewayReference{{Name: "edge"}}
		}
	}
}

func TestARouteIsMadeForAHost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.begun(forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`))
		if w.front == nil || w.front.GetName() != "web" || w.front.GetAnnotations()[manifold.AnnotationClusters] != "east,west" {
			t.Fatalf("by the first release there is %v", w.front)
		}
		if hosts, _, _ := unstructured.NestedStringSlice(w.front.Object, "spec", "hostnames"); fmt.Sprint(hosts) != "[web.example.com]" || w.front.GetOwnerReferences()[0].UID != "app" {
			t.Errorf("it is %v", w.front)
		}
		w.waits("web-b", "agree")
		w.holds("primary web:80 web-canary:20")
		w.settled()
		w.agreed()
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.step()
		w.holds("<nil>")
		w.settled()
		w.change(func(app *v1alpha1.Application) { app.Spec.Traffic, app.Spec.Pipeline = nil, nil })
		w.step()
		w.step()
		if w.front != nil {
			t.Errorf("nobody asks for it any more, and it is %v", w.front)
		}
	})
}

// Whatever keeps a route from being made is told before anything of the release is applied, and what runs goes on.
func TestWhatKeepsARouteFromBeingMadeIsToldBeforeAnythingBegins(t *testing.T) {
	for name, test := range map[string]struct {
		given func(*world)
		phase v1alpha1.ReleasePhase
		want  string
	}{
		"a route that somebody else has made": {func(w *world) {
			w.fronted(everywhere, `[{"name":"theirs"}]`)
			w.front.SetName("web")
		}, v1alpha1.ReleaseFailed, "HTTPRoute/web: it is there already, and does not belong to Application web"},
		"a kind that is not defined above": {func(w *world) { w.unserved = true }, v1alpha1.ReleasePending,
			"spec.traffic.method: the logical cluster has no kind HTTPRoute.gateway.networking.k8s.io: install its definition first"},
		"a kind that a cluster does not serve": {func(w *world) {
			w.serves("east", "Deployment.v1.apps", "HTTPRoute.v1.gateway.networking.k8s.io")
			w.serves("west", "Deployment.v1.apps", "HTTPRoute.v1.example.com")
		}, v1alpha1.ReleasePending, `spec.traffic.method: kind HTTPRoute.gateway.networking.k8s.io is not served by cluster "west": install its definition there`},
		"no right": {func(w *world) {
			w.unfit["HTTPRoute/web"] = apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "web", nil)
		}, v1alpha1.ReleaseFailed, `target "east": HTTPRoute/web: httproutes "web" is forbidden`},
		"a Service of two ports": {func(w *world) {
			w.revise(2, both, strings.Replace(webService, `[{"port":80}]`, `[{"name":"a","port":80},{"name":"b","port":81}]`, 1), labelled("two"))
		}, v1alpha1.ReleaseFailed, `target "east": spec.traffic.port: Required value: Service web has the ports 80, 81: say which one the route leads to`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(func(app *v1alpha1.Application) { app.Spec.Traffic = &v1alpha1.Traffic{Method: v1alpha1.TrafficService} }, both...)
			w.revise(1, both, webService, labelled("one"))
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			w.settled()
			w.revise(2, both, webService, labelled("two"))
			test.given(w)
			before := w.front.DeepCopy()
			w.asks("web-b", "web-v2", nil)
			w.change(forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`))
			for range 10 {
				w.step()
			}
			release := w.release("web-b")
			if release.Status.Phase != test.phase || !strings.Contains(release.Status.Message, test.want) {
				t.Errorf("%s: %q, want %s", release.Status.Phase, release.Status.Message, test.want)
			}
			if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xone west:10xone; " {
				t.Errorf("runs %s", got)
			}
			if before != nil && (w.front == nil || fmt.Sprint(w.front.Object["spec"]) != fmt.Sprint(before.Object["spec"]) || w.front.GetOwnerReferences() != nil) {
				t.Errorf("the route of somebody else has become %v", w.front)
			}
		})
	}
}

// serves has a cluster say what kinds it has.
func (w *world) serves(cluster string, kinds ...string) {
	w.Helper()
	informer := w.ours.Manifold().V1alpha1().Clusters().Informer()
	found, _, _ := informer.GetIndexer().GetByKey(cluster)
	changed := found.(*manifold.Cluster).DeepCopy()
	changed.Status.Kinds = kinds
	w.add(informer, changed)
}

// A release begins by itself once the kind is there that it waits for.
func TestAReleaseBeginsOnceItsClustersServeTheKind(t *testing.T) {
	w := newWorld(t, both...)
	w.serves("west", "Deployment.v1.apps")
	w.given(forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`), both...)
	w.revise(1, both, webService, labelled("one"))
	w.asks("web-a", "web-v1", nil)
	w.step()
	if got := w.release("web-a").Status; got.Phase != v1alpha1.ReleasePending || w.front != nil || len(w.writes) > 0 {
		t.Errorf("%s: %s, written %v", got.Phase, got.Message, w.writes)
	}
	w.serves("west", "Deployment.v1.apps", "HTTPRoute.v1beta1.gateway.networking.k8s.io")
	w.until("web-a", v1alpha1.ReleaseSucceeded)
}

// Once a release is over, nobody but an event tells that a route is not made, and all else of the application goes on.
func TestARouteThatIsRefusedLaterIsToldByAnEvent(t *testing.T) {
	for name, test := range map[string]struct {
		given func(*world)
		ask   func(*v1alpha1.Application)
		want  string
	}{
		"somebody else's": {func(w *world) {
			w.fronted(everywhere, `[{"name":"theirs"}]`)
			w.front.SetName("web")
		}, forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`), "spec.traffic.host: HTTPRoute/web: it is there already"},
		"a kind that is not defined": {func(w *world) { w.unserved = true }, forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`),
			"spec.traffic.host: HTTPRoute/web: the logical cluster has no kind HTTPRoute in gateway.networking.k8s.io/v1"},
		"a port that there is not": {func(*world) {}, func(app *v1alpha1.Application) {
			forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`)(app)
			app.Spec.Traffic.Port = 8080
		}, "spec.traffic.port: Invalid value: 8080: Service web has 80"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			events := record.NewFakeRecorder(10)
			w.Recorder = events
			w.given(nil, both...)
			w.revise(1, both, webService, labelled("one"))
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			w.settled()
			test.given(w)
			w.change(test.ask)
			for range 5 {
				w.step()
			}
			told := ""
			for len(events.Events) > 0 {
				if event := <-events.Events; strings.Contains(event, "RouteNotMade") {
					told += event + "\n"
				}
			}
			if strings.Count(told, "\n") != 1 || !strings.Contains(told, test.want) {
				t.Errorf("told: %q, want %s once", told, test.want)
			}
			if w.front != nil && len(w.front.GetOwnerReferences()) > 0 {
				t.Errorf("the route of somebody else has become %v", w.front)
			}
		})
	}
}

// Requests come by a route that is there, whatever keeps the next one from being made.
func TestARouteStaysWhileTheNextOneCannotBeMade(t *testing.T) {
	w := newWorld(t, both...)
	w.given(forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`), both...)
	w.revise(1, both, webService, labelled("one"))
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.settled()
	w.change(func(app *v1alpha1.Application) { app.Spec.Traffic.Port = 8080 })
	w.step()
	w.step()
	if w.front == nil {
		t.Fatal("the route is gone")
	}
	w.change(func(app *v1alpha1.Application) { app.Spec.Traffic.Port, app.Spec.Traffic.Host = 80, "new.example.com" })
	w.step()
	if hosts, _, _ := unstructured.NestedStringSlice(w.front.Object, "spec", "hostnames"); fmt.Sprint(hosts) != "[new.example.com]" {
		t.Errorf("it is for %v", hosts)
	}
}

// A route that is made is waited for, until placement has it and clusters have taken it up. What they say to it is told.
func TestAStageWaitsForTheRouteThatIsMade(t *testing.T) {
	for name, test := range map[string]struct {
		breaks, mends func(*world)
		want          string
	}{
		"placement":  {func(w *world) { w.unplaced = true }, func(w *world) { w.unplaced = false }, "HTTPRoute web is not placed there yet"},
		"the rights": {func(w *world) { w.gizmos.problems["east"] = "no right to httproutes" }, func(w *world) { clear(w.gizmos.problems) }, "HTTPRoute web: no right to httproutes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			test.breaks(w)
			w.begun(func(app *v1alpha1.Application) {
				forHost(v1alpha1.TrafficHTTPRoute, `{"canary":20}`)(app)
				deadline := int32(3600)
				app.Spec.ProgressDeadlineSeconds = &deadline
			})
			w.waits("web-b", "there")
			for range 5 {
				w.step()
			}
			if got := w.phase("there"); got.Phase != v1alpha1.StageRunning || len(got.Targets) != 2 || !strings.Contains(got.Targets[0].Message, `waiting for cluster "east" to send`) ||
				!strings.Contains(got.Targets[0].Message, test.want) {
				t.Errorf("%+v, want %s", got, test.want)
			}
			test.mends(w)
			w.waits("web-b", "agree")
			w.holds("primary web:80 web-canary:20")
		})
	}
}

// leads are the paths that a cluster holds of an Ingress, with the weight that nginx goes by.
func (w *world) leads(cluster, name string) string {
	w.Helper()
	found, exists, _ := w.informer(ingresses).GetIndexer().GetByKey("shop/" + name)
	if !exists {
		return "nothing"
	}
	in := found.(*networkingv1.Ingress)
	kind, _ := projection.ForGVK(networkingv1.SchemeGroupVersion.WithKind("Ingress"))
	held, err := kind.Project(in, projection.Part{}, projection.Target{LogicalCluster: "one", Cluster: cluster})
	if err != nil {
		w.Fatal(err)
	}
	is := held.(*networkingv1.Ingress)
	if weight := is.Annotations["nginx.ingress.kubernetes.io/canary-weight"]; weight != "" {
		return weight
	}
	var out []string
	for _, path := range is.Spec.Rules[0].HTTP.Paths {
		out = append(out, path.Path+":"+path.Backend.Service.Name)
	}
	return strings.Join(out, " ")
}

func (w *world) lead(name, want string) {
	w.Helper()
	for _, cluster := range both {
		if got := w.leads(cluster, name); got != want {
			w.Errorf("cluster %s has Ingress %s lead to %s, want %s", cluster, name, got, want)
		}
	}
}

func TestAnIngressHasAPathForEachVariant(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.begun(forHost(v1alpha1.TrafficIngress, `{"all":"canary"}`))
		w.lead("web", "/:web")
		w.waits("web-b", "agree")
		w.lead("web", "/:web-canary /canary:web-canary")
		w.settled()
		w.agreed()
		w.waits("web-b", "clean")
		w.lead("web", "/:web /canary:web-canary")
		began := w.clock.Now()
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		if took := w.clock.Now().Sub(began); took < 25*time.Second {
			t.Errorf("the canary has drained for %s", took)
		}
		w.step()
		w.lead("web", "/:web")
		w.settled()
	})
}

func TestNginxGivesACanaryWeights(t *testing.T) {
	nginx := func(app *v1alpha1.Application) {
		forHost(v1alpha1.TrafficIngress, `{"canary":20}`)(app)
		app.Spec.Traffic.NginxCanary, app.Spec.Traffic.ClassName = true, "nginx"
	}
	each(t, func(t *testing.T, w *world) {
		w.begun(nginx)
		w.waits("web-b", "agree")
		w.lead("web", "/:web")
		w.lead("web-canary", "20")
		w.settled()
		w.agreed()
		w.waits("web-b", "clean")
		w.lead("web-canary", "0")
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.step()
		w.lead("web-canary", "nothing")
		w.lead("web", "/:web")
		w.settled()
	})
	t.Run("over clusters", func(t *testing.T) {
		w := newWorld(t, both...)
		w.begun(func(app *v1alpha1.Application) {
			nginx(app)
			app.Spec.Pipeline.Stages[0].Targets = []string{"east"}
		})
		w.waits("web-b", "agree")
		if east, west := w.leads("east", "web-canary"), w.leads("west", "web-canary"); east != "40" || west != "0" {
			t.Errorf("east sends the canary %s%% and west, which has none, %s%%", east, west)
		}
	})
	t.Run("of an Ingress that is there", func(t *testing.T) {
		w := newWorld(t, both...)
		w.add(w.informer(ingresses), ingressOfUsers(t))
		w.begun(func(app *v1alpha1.Application) {
			nginx(app)
			app.Spec.Traffic.Name = "front"
		})
		w.waits("web-b", "agree")
		w.lead("front-canary", "20")
		w.lead("front", "/:web /old:old")
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		w.until("web-b", v1alpha1.ReleaseRolledBack)
		w.lead("front-canary", "nothing")
		w.lead("front", "/:web /old:old")
	})
}

func ingressOfUsers(t *testing.T) *networkingv1.Ingress {
	t.Helper()
	out := &networkingv1.Ingress{}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"front","namespace":"shop","annotations":{"a":"b"}},
		"spec":{"rules":[{"http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}},
		{"path":"/old","pathType":"Prefix","backend":{"service":{"name":"old","port":{"number":80}}}}]}}]}}`)); err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAnIngressOfUsersIsHeldWithPathsForVariants(t *testing.T) {
	w := newWorld(t, both...)
	w.add(w.informer(ingresses), ingressOfUsers(t))
	w.begun(func(app *v1alpha1.Application) {
		sharedOut(v1alpha1.TrafficIngress, `{"primary":100}`, `{"primary":100}`)(app)
		app.Spec.Traffic.Name = "front"
	})
	w.waits("web-b", "agree")
	w.lead("front", "/:web /canary:web-canary /old:old")
	above, _, _ := w.informer(ingresses).GetIndexer().GetByKey("shop/front")
	if in := above.(*networkingv1.Ingress); len(in.Spec.Rules[0].HTTP.Paths) != 2 || len(identity.DecisionOf(in)) > 0 {
		t.Errorf("above it has become %+v", in.Spec)
	}
	w.agreed()
	w.until("web-b", v1alpha1.ReleaseSucceeded)
	w.step()
	w.lead("front", "/:web /old:old")
}
