package counted

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func minutes(n int) *metav1.Time { return &metav1.Time{Time: noon.Add(time.Duration(n) * time.Minute)} }

func release(name string, phase v1alpha1.ReleasePhase, ended int) *v1alpha1.Release {
	out := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v1"}, Status: v1alpha1.ReleaseStatus{Phase: phase},
	}
	if phase.Ended() {
		out.Status.EndTime = minutes(ended)
	}
	return out
}

// world is a logical cluster whose metrics nobody else counts.
type world struct {
	t         *testing.T
	name      string
	client    *fake.Clientset
	informers externalversions.SharedInformerFactory
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, name: t.Name(), client: fake.NewSimpleClientset(
		&v1alpha1.ApplicationRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v1"}, Spec: v1alpha1.ApplicationRevisionSpec{Origin: &v1alpha1.Origin{Time: minutes(-60)}},
		},
		&v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
		release("ended-before", v1alpha1.ReleaseFailed, 0), release("running", v1alpha1.ReleaseRunning, 0), release("waiting", v1alpha1.ReleasePending, 0),
	)}
	w.informers = externalversions.NewSharedInformerFactory(w.client, 0)
	if err := Watch(w.name, w.informers); err != nil {
		t.Fatal(err)
	}
	w.informers.Start(t.Context().Done())
	w.informers.WaitForCacheSync(t.Context().Done())
	return w
}

// shows waits until the metrics of the world are these, one a line, without those that are 0.
func (w *world) shows(want ...string) {
	w.t.Helper()
	end := time.After(time.Minute)
	for {
		got := w.metrics()
		if strings.Join(got, "\n") == strings.Join(want, "\n") {
			return
		}
		select {
		case <-end:
			w.t.Fatalf("the metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		case <-time.After(time.Millisecond):
		}
	}
}

func (w *world) metrics() []string {
	w.t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			values := map[string]string{}
			for _, label := range metric.GetLabel() {
				values[label.GetName()] = label.GetValue()
			}
			said := fmt.Sprintf("%s %s/%s %s", strings.TrimPrefix(family.GetName(), "manifold_delivery_"), values["namespace"], values["application"], values["result"])
			switch {
			case values["logical_cluster"] != w.name:
			case metric.GetHistogram() != nil:
				out = append(out, fmt.Sprintf("%s%d of %.0f", said, metric.GetHistogram().GetSampleCount(), metric.GetHistogram().GetSampleSum()))
			case metric.GetCounter().GetValue() > 0:
				out = append(out, fmt.Sprintf("%s %.0f", said, metric.GetCounter().GetValue()))
			}
		}
	}
	return out
}

func (w *world) update(release *v1alpha1.Release) {
	w.t.Helper()
	if _, err := w.client.DeliveryV1alpha1().Releases(release.Namespace).Update(w.t.Context(), release, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func TestReleasesAreCountedWhenTheyEnd(t *testing.T) {
	w := newWorld(t)
	w.update(release("running", v1alpha1.ReleaseSucceeded, 30))
	w.shows("changes_total shop/web succeeded 1", "lead_time_seconds shop/web 1 of 5400", "time_to_restore_seconds shop/web 1 of 1800")

	again := release("running", v1alpha1.ReleaseSucceeded, 30)
	again.Status.Message = "it is told of once more"
	w.update(again)
	back := release("waiting", v1alpha1.ReleaseSucceeded, 50)
	back.Spec.RollbackOf = "running"
	w.update(back)
	w.shows("changes_total shop/web rolled_back_later 1", "changes_total shop/web succeeded 1", "lead_time_seconds shop/web 1 of 5400", "time_to_restore_seconds shop/web 2 of 3000")

	if err := w.client.DeliveryV1alpha1().Applications("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.shows()
}

func TestApplicationsBeyondTheBoundAreCountedTogether(t *testing.T) {
	w := &world{t: t, name: t.Name()}
	informers := externalversions.NewSharedInformerFactory(fake.NewSimpleClientset(), 0).Delivery().V1alpha1()
	c := &Counter{
		logicalCluster: t.Name(), releases: informers.Releases().Lister(), revisions: informers.ApplicationRevisions().Lister(), counted: sets.New[cache.ObjectName](),
	}
	for i := range most + 3 {
		running, ended := release("a", v1alpha1.ReleaseRunning, 0), release("a", v1alpha1.ReleaseFailed, 1)
		running.Spec.Application = fmt.Sprintf("app-%d", i)
		ended.Spec.Application = running.Spec.Application
		c.updated(running, ended)
	}
	got := w.metrics()
	if len(got) != most+1 || got[0] != "changes_total /_others failed 3" {
		t.Errorf("%d series, the first is %q; want %d, the first with what is beyond the bound", len(got), got[0], most+1)
	}
}
