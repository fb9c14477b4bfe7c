package applications

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
)

func TestDriftIsTold(t *testing.T) {
	image := drift.Object{Group: "apps", Kind: "Deployment", Name: "web", Clusters: []string{"east"}, Count: 1, Fields: []drift.Field{{Path: "/spec/replicas", Wanted: "2", Found: "5", Clusters: []string{"east"}}}}
	unclear := drift.Object{Kind: "Service", Name: "web", Clusters: []string{"west"}, Unclear: "no right"}
	with := func(change func(*drift.Object)) drift.Object {
		out := image
		change(&out)
		return out
	}
	const differs = "Deployment/web: /spec/replicas is to be 2, and 5 was found"
	for name, test := range map[string]struct {
		objects []drift.Object
		status  metav1.ConditionStatus
		says    string
	}{
		"nothing differs": {status: metav1.ConditionTrue},
		"a field differs": {objects: []drift.Object{image}, status: metav1.ConditionFalse, says: "Drifted: " + differs},
		"one does in the logical cluster alone": {
			objects: []drift.Object{with(func(o *drift.Object) { o.Clusters = nil })}, status: metav1.ConditionFalse, says: "Drifted: " + differs + " in the logical cluster alone",
		},
		"several objects do":              {objects: []drift.Object{image, image, image}, status: metav1.ConditionFalse, says: differs + "; and 2 other objects"},
		"nobody can tell":                 {objects: []drift.Object{unclear}, status: metav1.ConditionUnknown, says: "NotComparable: Service/web cannot be compared with what was released: no right"},
		"what differs counts more":        {objects: []drift.Object{unclear, image}, status: metav1.ConditionFalse, says: differs},
		"somebody changes it each time":   {objects: []drift.Object{with(func(o *drift.Object) { o.Healed = 4 })}, status: metav1.ConditionFalse, says: "NotKept: " + differs + "; it was put back 4 times"},
		"it cannot be put back":           {objects: []drift.Object{with(func(o *drift.Object) { o.Unhealed = "immutable" })}, status: metav1.ConditionFalse, says: "NotHealed: " + differs + "; it cannot be put back: immutable"},
		"it was put back a moment before": {objects: []drift.Object{with(func(o *drift.Object) { o.Healed = 1 })}, status: metav1.ConditionFalse, says: "Drifted: " + differs},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, inline(deployment))
			if app := w.turn(); meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationInSync) != nil {
				t.Fatal("it is told before anybody has looked")
			}
			w.watches.drift.Set(web, "uid-of-web", test.objects)
			if w.queues.rest.Len() == 0 {
				t.Error("nobody shows it")
			}
			app := w.turn()
			found := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationInSync)
			if found == nil || found.Status != test.status || !strings.Contains(found.Reason+": "+found.Message, test.says) {
				t.Errorf("condition InSync is %+v, want %s, and that it says %q", found, test.status, test.says)
			}
			if changed := test.status == metav1.ConditionFalse; (app.Status.Sync == v1alpha1.OutOfSync) != changed {
				t.Errorf("the application is %s", app.Status.Sync)
			}
			if want, count := drift.Status(test.objects); marshalled(app.Status.Drift) != marshalled(want) || app.Status.DriftCount != count {
				t.Errorf("drift is %+v of %d, want %+v", app.Status.Drift, app.Status.DriftCount, want)
			}
		})
	}
}

// Whose clusters are shown is looked at when one of them falls silent, and nobody else.
func TestWhoIsLookedAtWhenAClusterFallsSilent(t *testing.T) {
	cluster := func(conditions ...metav1.Condition) *manifold.Cluster {
		return &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Status: manifold.ClusterStatus{Conditions: conditions, KubernetesVersion: "v1"}}
	}
	ready := metav1.Condition{Type: manifold.ClusterReady, Status: metav1.ConditionTrue}
	silent := metav1.Condition{Type: manifold.ClusterAnswering, Status: metav1.ConditionFalse}
	for name, test := range map[string]struct {
		runsIn   string
		old, now *manifold.Cluster
		want     int
	}{
		"it falls silent":              {"east", cluster(ready), cluster(ready, silent), 1},
		"it answers again":             {"east", cluster(ready, silent), cluster(ready), 1},
		"it is not ready":              {"east", cluster(ready), cluster(metav1.Condition{Type: manifold.ClusterReady, Status: metav1.ConditionFalse}), 1},
		"something else changes":       {"east", cluster(), cluster(ready), 0},
		"the application is elsewhere": {"west", cluster(ready), cluster(ready, silent), 0},
	} {
		t.Run(name, func(t *testing.T) {
			applications := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			w := &watches{view: &view{applications: applications}, queues: newQueues("")}
			for _, queue := range []queue{w.queues.nearby, w.queues.remote, w.queues.rest} {
				t.Cleanup(queue.ShutDown)
			}
			if err := indexBy(applications, byCluster, running); err != nil {
				t.Fatal(err)
			}
			app := inline()
			app.Status.Targets = []v1alpha1.TargetStatus{{Name: "eu", Clusters: []v1alpha1.TargetClusterStatus{{Name: test.runsIn}}}}
			if err := applications.Add(app); err != nil {
				t.Fatal(err)
			}
			w.clusterHandler().OnUpdate(test.old, test.now)
			if got := w.queues.rest.Len(); got != test.want {
				t.Errorf("%d applications are looked at, want %d", got, test.want)
			}
		})
	}
}
