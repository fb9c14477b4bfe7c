package syncer

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

const notAll = "not all that web-v8 has beside it is there yet"

// ofWeb has an object belong to Application web, and west hold it at a revision.
func ofWeb(object projection.Object, revision string) projection.Object {
	object.SetLabels(map[string]string{delivery.LabelApplication: "web"})
	object.SetAnnotations(map[string]string{v1alpha1.AnnotationPlacement: `{"west":{"replicas":0,"revision":"` + revision + `","target":"eu"}}`})
	return object
}

func settings(name, colour string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(name), Data: map[string]string{"colour": colour}}
}

func usingConfigMap(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
		}}}
	}
}

// besideWorld is a cluster that has Deployment web at web-v8, whose revision has a ConfigMap and a Service that go along with it, a ConfigMap that nothing
// needs, and another workload.
type besideWorld struct {
	*testSyncer
	above *appsv1.Deployment
	api   *appsv1.Deployment
	// hashes are those of the manifests of web-v8 by the keys of their objects.
	hashes map[identity.Key]string
}

func (w besideWorld) key(resource string) identity.Key {
	for key := range w.hashes {
		if key.Resource.Resource == resource && key.Name != "unused" && key.Name != "api" {
			return key
		}
	}
	panic(resource)
}

// has notes that the cluster has an object at a revision.
func (w besideWorld) has(key identity.Key, revision, hash string) {
	above := w.Upstream.Get(key)
	kind, _ := projection.ForResource(key.Resource)
	w.done(key, kind, states.State{UID: above.GetUID(), Hash: "of " + revision, Revision: projection.RevisionMark(revision, hash)})
}

func (w besideWorld) lacks(t *testing.T, above *appsv1.Deployment) string {
	t.Helper()
	report, known := w.reports.Report(identity.Key{Resource: deploymentResource, Namespace: "shop", Name: above.Name}, above)
	if !known || report.Revision != "web-v8" {
		t.Fatalf("report %+v (%t), want one of web-v8", report, known)
	}
	return report.Lacks
}

// newBesideWorld is one in which the ConfigMap above is to be held at a revision.
func newBesideWorld(t *testing.T, status, settingsAt string) besideWorld {
	t.Helper()
	web := deployment("web", atEight, usingConfigMap("settings"), ofReplicas(2))
	api := deployment("api", atEight, running("api:8"), ofReplicas(2))
	if status != "" {
		web.Annotations[v1alpha1.AnnotationStatus], api.Annotations[v1alpha1.AnnotationStatus] = status, status
	}
	objects := []projection.Object{deployment("web", "", usingConfigMap("settings")), deployment("api", "", running("api:8")), settings("settings", "red"), settings("unused", "red"), service("web", map[string]string{"app": "web"})}
	r := newReleased(t, namespace("shop"), web, api, ofWeb(settings("settings", "red"), settingsAt), ofWeb(settings("unused", "red"), "web-v8"),
		ofWeb(service("web", map[string]string{"app": "web"}), "web-v8"))
	r.release(t, "web-v7", deployment("web", "", usingConfigMap("settings")), deployment("api", "", running("api:7")), settings("settings", "blue"))
	eight := r.release(t, "web-v8", objects...)
	out := besideWorld{above: web, api: api, hashes: map[identity.Key]string{}}
	var live []projection.Object
	for i, object := range objects {
		kind, _ := projection.KindOf(object)
		out.hashes[identity.KeyOf(kind, object)] = eight.Spec.Objects[i].Hash
		if of, is := object.(*appsv1.Deployment); is {
			has := projected(of, 2, 2)
			has.Annotations[delivery.AnnotationRevision] = projection.RevisionMark("web-v8", eight.Spec.Objects[i].Hash)
			live = append(live, has)
		}
	}
	out.testSyncer = attach(t, r.Upstream, "west", live...)
	return out
}

func TestAWorkloadTellsWhatItsClusterLacksBesideIt(t *testing.T) {
	const was = `{"west":{"revision":"web-v7","target":"eu"}}`
	for name, test := range map[string]struct {
		// status is what was told last, and settingsAt which revision of the ConfigMap the cluster was told to hold.
		status, settingsAt string
		given              func(w besideWorld)
		want               string
	}{
		"nothing is known to be there": {status: was, settingsAt: "web-v8", given: func(besideWorld) {}, want: notAll},
		"all is there that goes there": {status: was, settingsAt: "web-v8", given: func(w besideWorld) {
			w.has(w.key("configmaps"), "web-v8", w.hashes[w.key("configmaps")])
			w.has(w.key("services"), "web-v8", w.hashes[w.key("services")])
		}},
		"the ConfigMap is that of another revision": {status: was, settingsAt: "web-v8", given: func(w besideWorld) {
			w.has(w.key("configmaps"), "web-v7", "another")
			w.has(w.key("services"), "web-v8", w.hashes[w.key("services")])
		}, want: notAll},
		"the ConfigMap is the same in another revision": {status: was, settingsAt: "web-v8", given: func(w besideWorld) {
			w.has(w.key("configmaps"), "web-v7", w.hashes[w.key("configmaps")])
			w.has(w.key("services"), "web-v8", w.hashes[w.key("services")])
		}},
		"the cluster was not told yet to hold another ConfigMap": {status: was, settingsAt: "web-v7", given: func(w besideWorld) {
			w.has(w.key("configmaps"), "web-v7", "another")
			w.has(w.key("services"), "web-v8", w.hashes[w.key("services")])
		}, want: notAll},
		"the Service is not there": {status: was, settingsAt: "web-v8", given: func(w besideWorld) {
			w.has(w.key("configmaps"), "web-v8", w.hashes[w.key("configmaps")])
		}, want: notAll},
		"the Service cannot be there": {status: was, settingsAt: "web-v8", given: func(w besideWorld) {
			w.has(w.key("configmaps"), "web-v8", w.hashes[w.key("configmaps")])
			w.fail(w.key("services"), w.Upstream.Get(w.key("services")), "NotApplied", "the port is taken")
		}, want: "Service web of web-v8 is not there: the port is taken"},
		"it was told before that all is there, as before a restart": {
			status: `{"west":{"revision":"web-v8","target":"eu"}}`, settingsAt: "web-v8", given: func(besideWorld) {},
		},
		"it was told before that something lacks": {
			status: `{"west":{"revision":"web-v8","target":"eu","lacks":"x"}}`, settingsAt: "web-v8", given: func(besideWorld) {}, want: notAll,
		},
		"something was written since it was told that all is there": {
			status: `{"west":{"revision":"web-v8","target":"eu"}}`, settingsAt: "web-v8", given: func(w besideWorld) {
				w.has(w.key("configmaps"), "web-v8", w.hashes[w.key("configmaps")])
				w.has(w.key("configmaps"), "web-v9", "another")
			}, want: notAll,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBesideWorld(t, test.status, test.settingsAt)
			test.given(w)
			for range 2 {
				if got := w.lacks(t, w.above); got != test.want {
					t.Errorf("it lacks %q, want %q", got, test.want)
				}
				if got := w.lacks(t, w.api); got != "" {
					t.Errorf("the other workload tells %q as well", got)
				}
			}
		})
	}
}

// A workload that comes to be placed tells it in place of the one that has told it until then, which has something else to tell at the end as well.
func TestWhatAClusterLacksIsTakenBackByAllWhoToldIt(t *testing.T) {
	w := newBesideWorld(t, "", "web-v8")
	above := w.Upstream.Stores[deploymentResource]
	must(t, above.Delete(w.above))
	if got := w.lacks(t, w.api); got != notAll {
		t.Errorf("the only workload tells %q", got)
	}
	must(t, above.Add(w.above))
	if got := w.lacks(t, w.above); got != notAll {
		t.Errorf("the first workload tells %q", got)
	}
	w.has(w.key("configmaps"), "web-v8", w.hashes[w.key("configmaps")])
	w.changes = nil
	w.has(w.key("services"), "web-v8", w.hashes[w.key("services")])
	told := map[string]bool{}
	for _, change := range w.changes {
		told[change.key.Name] = true
	}
	if got := w.lacks(t, w.above) + w.lacks(t, w.api); got != "" || !told["web"] || !told["api"] {
		t.Errorf("looked at again are %v, which tell %q", told, got)
	}
}

// Whoever tells it is woken when there is something else to tell, and not by each object.
func TestWhatAClusterLacksIsToldAnewWhenThereIsNews(t *testing.T) {
	w := newBesideWorld(t, "", "web-v8")
	if got := w.lacks(t, w.above); got != notAll {
		t.Fatalf("it lacks %q", got)
	}
	told := func() (n int) {
		for _, change := range w.changes {
			if change.key.Resource == deploymentResource && change.key.Name == "web" {
				n++
			}
		}
		w.changes = nil
		return n
	}
	told()
	w.has(w.key("configmaps"), "web-v8", w.hashes[w.key("configmaps")])
	if n := told(); n != 0 {
		t.Errorf("told %d times before all is there", n)
	}
	w.fail(w.key("services"), w.Upstream.Get(w.key("services")), "NotApplied", "the port is taken")
	if told() == 0 || !strings.Contains(w.lacks(t, w.above), "the port is taken") {
		t.Errorf("it is not told that the Service cannot be there: it lacks %q", w.lacks(t, w.above))
	}
	// Another workload is reported between the moment at which the Service is there and the one at which that is heard of.
	is := states.State{UID: w.Upstream.Get(w.key("services")).GetUID(), Hash: "of web-v8", Revision: projection.RevisionMark("web-v8", w.hashes[w.key("services")])}
	w.states.Set(w.key("services"), is)
	if got := w.lacks(t, w.api); got != "" {
		t.Errorf("the other workload tells %q", got)
	}
	w.has(w.key("services"), "web-v8", w.hashes[w.key("services")])
	if told() == 0 || w.lacks(t, w.above) != "" {
		t.Errorf("it is not told that all is there: it lacks %q", w.lacks(t, w.above))
	}
}
