package releases

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
)

// edit has a user change the Deployment above.
func (w *world) edit(change func(*appsv1.Deployment)) {
	w.Helper()
	informer := w.informer(appsv1.SchemeGroupVersion.WithResource("deployments"))
	obj, exists, _ := informer.GetIndexer().GetByKey("shop/web")
	if !exists {
		w.Fatal("there is no Deployment")
	}
	edited := obj.(*appsv1.Deployment).DeepCopy()
	change(edited)
	w.add(informer, edited)
}

func (w *world) deleted() {
	w.Helper()
	informer := w.informer(appsv1.SchemeGroupVersion.WithResource("deployments"))
	if obj, exists, _ := informer.GetIndexer().GetByKey("shop/web"); exists {
		_ = informer.GetIndexer().Delete(obj)
	}
}

// says changes what the application says.
func (w *world) says(change func(*v1alpha1.Application)) {
	w.Helper()
	app, err := w.ours.Delivery().V1alpha1().Applications().Lister().Applications("shop").Get("web")
	if err != nil {
		w.Fatal(err)
	}
	app = app.DeepCopy()
	change(app)
	app.Generation++
	w.add(w.ours.Delivery().V1alpha1().Applications().Informer(), app)
}

// drifted is what is known of the application's drift, in words.
func (w *world) drifted() string {
	objects, known := w.Drift.Of("app")
	if !known {
		return "unknown"
	}
	var out []string
	for _, object := range objects {
		said := object.String()
		if len(object.Clusters) > 0 {
			said += " in " + strings.Join(object.Clusters, ",")
		}
		out = append(out, said)
	}
	return strings.Join(out, "; ")
}

func image(to string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = to }
}

func heals(app *v1alpha1.Application) { app.Spec.Drift = &v1alpha1.Drift{Heal: true} }

const imageDrift = `Deployment/web: /spec/template/spec/containers/0/image is to be "one", and "two" was found in the logical cluster alone`

func TestAFreshReleaseHasNoDrift(t *testing.T) {
	w := newWorld(t, both...)
	w.first(nil)
	if got := w.drifted(); got != "" || len(w.tried) > 0 {
		t.Errorf("drift is %q, and the server was asked about %v", got, w.tried)
	}
}

func TestWhatSomebodyChangesIsShownAndLeft(t *testing.T) {
	w := newWorld(t, both...)
	w.first(nil)
	w.writes = nil
	w.edit(image("two"))
	w.step()
	if got := w.drifted(); got != imageDrift || len(w.writes) > 0 {
		t.Errorf("drift is %q, and written is %v; want %q and nothing", got, w.writes, imageDrift)
	}
	tried := len(w.tried)
	for range 5 {
		w.edit(func(d *appsv1.Deployment) { d.Status.ReadyReplicas++ })
		w.step()
	}
	if tried != 1 || len(w.tried) != tried {
		t.Errorf("the server was asked %d times, want once for the change", len(w.tried))
	}
	w.edit(image("one"))
	w.step()
	if got := w.drifted(); got != "" {
		t.Errorf("once it is changed back, drift is %q", got)
	}
}

// Clusters are held at what their targets' own manifests say. What is changed above reaches them only where the object is not theirs to hold.
func TestWhichClustersDriftReaches(t *testing.T) {
	service := func(more string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80` + more + `}]}}`
	}
	replicas := func(w *world) { w.edit(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(7)) }) }
	nodePort := func(w *world) {
		informer := w.informer(corev1.SchemeGroupVersion.WithResource("services"))
		obj, _, _ := informer.GetIndexer().GetByKey("shop/web")
		edited := obj.(*corev1.Service).DeepCopy()
		edited.Spec.Ports[0].NodePort = 30002
		w.add(informer, edited)
	}
	const replicasDrift = "Deployment/web: /spec/replicas is to be 10, and 7 was found in east,west"
	for name, test := range map[string]struct {
		east, west []string
		change     func(*world)
		want       string
	}{
		"a change of the manifest that the object above has": {
			east: []string{deploymentOf("one")}, west: []string{deploymentOf("other")}, change: func(w *world) { w.edit(image("two")) }, want: imageDrift,
		},
		"a change to what another target has": {
			east: []string{deploymentOf("one")}, west: []string{deploymentOf("other")}, change: func(w *world) { w.edit(image("other")) },
			want: strings.Replace(imageDrift, "two", "other", 1),
		},
		"replicas, which follow the object above everywhere": {
			east: []string{deploymentOf("one")}, west: []string{deploymentOf("other")}, change: replicas, want: replicasDrift,
		},
		"of several fields those that reach a cluster are told of it": {
			east: []string{deploymentOf("one")}, west: []string{deploymentOf("other")}, change: func(w *world) { w.edit(image("two")); replicas(w) },
			want: "Deployment/web: 2 fields differ, such as /spec/replicas, which is to be 10, and 7 was found in east,west",
		},
		"a port of nodes, where the target's manifest leaves it to the logical cluster": {
			east: []string{deploymentOf("one"), service(`,"nodePort":30001`)}, west: []string{deploymentOf("one"), service("")}, change: nodePort,
			want: "Service/web: /spec/ports/0/nodePort is to be 30001, and 30002 was found in west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(nil, both...)
			w.reviseEach(1, nil, map[string][]string{"east": test.east, "west": test.west})
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			w.settled()
			if got := w.drifted(); got != "" {
				t.Fatalf("before anybody has changed anything drift is %q", got)
			}
			test.change(w)
			w.step()
			if got := w.drifted(); got != test.want {
				t.Errorf("drift is %q, want %q", got, test.want)
			}
			objects, _ := w.Drift.Of("app")
			for _, object := range objects {
				for _, cluster := range object.Clusters {
					if said := object.In(cluster); strings.Contains(said, "image") || strings.Contains(said, "fields") || strings.Contains(said, "logical cluster") {
						t.Errorf("of cluster %s is told %q, which is not about it", cluster, said)
					}
				}
			}
		})
	}
}

func TestWhatDoesNotCountIsNoDrift(t *testing.T) {
	replicas := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(7)) }
	for name, test := range map[string]struct {
		given  func(w *world)
		change func(*appsv1.Deployment)
		want   string
	}{
		"a field that is ignored": {
			given: func(w *world) {
				w.says(func(app *v1alpha1.Application) {
					app.Spec.Drift = &v1alpha1.Drift{Ignore: []v1alpha1.DriftIgnore{{Kind: "Deployment", JSONPointers: []string{"/spec/template/spec/containers/0/image"}}}}
				})
			},
			change: image("two"),
		},
		"replicas that an autoscaler sets, whoever has made it": {
			given: func(w *world) {
				w.add(w.informer(autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")), &autoscalingv2.HorizontalPodAutoscaler{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"},
					Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}},
				})
			},
			change: replicas,
		},
		"replicas that nobody else sets": {given: func(*world) {}, change: replicas, want: "Deployment/web: /spec/replicas is to be 10, and 7 was found in east,west"},
		"what somebody has added":        {given: func(*world) {}, change: func(d *appsv1.Deployment) { d.Spec.Paused = true }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.first(nil)
			test.given(w)
			w.edit(test.change)
			w.step()
			if got := w.drifted(); got != test.want {
				t.Errorf("drift is %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatSomebodyChangesIsPutBack(t *testing.T) {
	w := newWorld(t, both...)
	w.first(heals)
	w.writes = nil
	w.edit(image("two"))
	w.step()
	w.step()
	if got := w.drifted(); got != "" || strings.Join(w.writes, " ") != "Deployment/web" {
		t.Errorf("drift is %q, and written is %v; want it to be put back once", got, w.writes)
	}
	var told bool
	for recorder := w.Recorder.(*record.FakeRecorder); len(recorder.Events) > 0; {
		told = told || strings.Contains(<-recorder.Events, "Normal Healed Deployment/web: /spec/template/spec/containers/0/image")
	}
	if !told {
		t.Error("no event tells that it was put back")
	}
}

// What the server does not let us compare is not known, and neither drift nor put back.
func TestWhatCannotBeComparedIsUnclear(t *testing.T) {
	w := newWorld(t, both...)
	w.first(heals)
	w.unfit["Deployment/web"] = apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("no right to patch"))
	w.writes = nil
	w.edit(image("two"))
	w.step()
	objects, _ := w.Drift.Of("app")
	if len(objects) != 1 || !strings.Contains(objects[0].Unclear, "no right to patch") || objects[0].Count != 0 || len(w.writes) > 0 {
		t.Errorf("drift is %+v, and written is %v; want that it cannot be told", objects, w.writes)
	}
}

// What is put back leaves alone what does not count.
func TestWhatIsIgnoredStaysWhenTheRestIsPutBack(t *testing.T) {
	w := newWorld(t, both...)
	w.first(func(app *v1alpha1.Application) {
		heals(app)
		app.Spec.Drift.Ignore = []v1alpha1.DriftIgnore{{JSONPointers: []string{"/spec/replicas"}}}
	})
	w.edit(func(d *appsv1.Deployment) { image("two")(d); d.Spec.Replicas = ptr.To(int32(7)) })
	w.step()
	w.edit(func(d *appsv1.Deployment) {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != "one" || *d.Spec.Replicas != 7 {
			t.Errorf("put back is image %s with %d replicas, want one with 7", got, *d.Spec.Replicas)
		}
	})
}

func TestAFightIsNotFoughtAllTheTime(t *testing.T) {
	w := newWorld(t, both...)
	w.first(heals)
	w.writes = nil
	start := w.clock.Now()
	for range 600 {
		w.edit(image("two"))
		w.step()
	}
	if spent := w.clock.Now().Sub(start); spent != 10*time.Minute || len(w.writes) > 12 || len(w.writes) < 3 {
		t.Errorf("it was put back %d times in %s", len(w.writes), spent)
	}
	objects, _ := w.Drift.Of("app")
	if len(objects) != 1 || objects[0].Healed < 3 {
		t.Errorf("what is told is %+v, want how often it was put back", objects)
	}
}

func TestWhatIsSuspendedIsNotPutBack(t *testing.T) {
	w := newWorld(t, both...)
	w.first(heals)
	w.says(func(app *v1alpha1.Application) { app.Spec.Suspend = true })
	w.writes = nil
	w.edit(image("two"))
	w.step()
	if got := w.drifted(); got != imageDrift || len(w.writes) > 0 {
		t.Errorf("drift is %q, and written is %v", got, w.writes)
	}
}

func TestWhatSomebodyDeletes(t *testing.T) {
	const missing = "Deployment/web is not there any more in east,west"
	t.Run("is shown and left, by another controller as well", func(t *testing.T) {
		w := newWorld(t, both...)
		w.first(nil)
		w.writes = nil
		w.deleted()
		w.step()
		if got := w.drifted(); got != missing || len(w.writes) > 0 {
			t.Fatalf("drift is %q, and written is %v", got, w.writes)
		}
		objects, _ := w.Drift.Of("app")
		w.says(func(app *v1alpha1.Application) { app.Status.Drift, _ = drift.Status(objects) })
		w.restart()
		w.step()
		if got := w.drifted(); got != missing || len(w.writes) > 0 {
			t.Errorf("after a restart drift is %q, and written is %v", got, w.writes)
		}
	})
	t.Run("is put back", func(t *testing.T) {
		w := newWorld(t, both...)
		w.first(heals)
		w.writes = nil
		w.deleted()
		w.step()
		w.step()
		if got := w.drifted(); got != "" || strings.Join(w.writes, " ") != "Deployment/web" {
			t.Errorf("drift is %q, and written is %v", got, w.writes)
		}
	})
	t.Run("is made anew by the next release", func(t *testing.T) {
		w := newWorld(t, both...)
		w.first(nil)
		w.deleted()
		w.step()
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got, want := w.runs("web"), "east:10xtwo west:10xtwo"; got != want || w.drifted() != "" {
			t.Errorf("runs %s, and drift is %q", got, w.drifted())
		}
	})
}
