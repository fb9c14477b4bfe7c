package applications

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/drifts"
	"github.com/manifold-dev/manifold/pkg/records"
)

func TestWhoIsLookedAtWhenSomethingChanges(t *testing.T) {
	fromGit := func(change func(*v1alpha1.Application)) *v1alpha1.Application {
		app := inline()
		app.Spec.Source = v1alpha1.Source{Git: &v1alpha1.GitSource{SecretRef: &v1alpha1.SecretReference{Name: "login"}}}
		if change != nil {
			change(app)
		}
		return app
	}
	refreshed := func(app *v1alpha1.Application) {
		app.Annotations = map[string]string{v1alpha1.AnnotationRefresh: "now"}
	}
	hooked := func(app *v1alpha1.Application) {
		app.Spec.Source.Git.Webhook = &v1alpha1.GitWebhook{SecretRef: v1alpha1.SecretReference{Name: "hook"}}
	}
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, test := range map[string]struct {
		app                  *v1alpha1.Application
		change               func(*watches)
		nearby, remote, rest int
	}{
		"an application that is new": {app: inline(), change: func(w *watches) { w.applicationHandler().OnAdd(inline(), true) }, nearby: 1, rest: 1},
		"one from git that is new":   {app: fromGit(nil), change: func(w *watches) { w.applicationHandler().OnAdd(fromGit(nil), true) }, remote: 1, rest: 1},
		"one whose status alone is another": {
			app: inline(), change: func(w *watches) { w.applicationHandler().OnUpdate(inline(), inline()) }, rest: 1,
		},
		"one that somebody wants looked at": {
			app: fromGit(nil), change: func(w *watches) { w.applicationHandler().OnUpdate(fromGit(nil), fromGit(refreshed)) }, remote: 1, rest: 1,
		},
		"one whose credentials are others": {app: fromGit(nil), change: func(w *watches) { w.secretChanged(secret("shop", "login")) }, remote: 1, rest: 1},
		"one whose pushes are signed by another Secret": {
			app: fromGit(hooked), change: func(w *watches) { w.secretChanged(secret("shop", "hook")) }, remote: 1, rest: 1,
		},
		"none for another Secret": {app: fromGit(nil), change: func(w *watches) { w.secretChanged(secret("shop", "other")) }},
		"none for one of another namespace": {
			app: fromGit(nil), change: func(w *watches) { w.secretChanged(secret("other", "login")) },
		},
		"all for a cluster that joins":   {app: inline(), change: func(w *watches) { w.clusterHandler().OnAdd(member(nil), false) }, rest: 1},
		"all for one that is relabelled": {app: inline(), change: func(w *watches) { w.clusterHandler().OnUpdate(member(nil), member(map[string]string{"region": "eu"})) }, rest: 1},
		"all for one that has gone":      {app: inline(), change: func(w *watches) { w.clusterHandler().OnDelete(member(nil)) }, rest: 1},
		"none for one that was there":    {app: inline(), change: func(w *watches) { w.clusterHandler().OnAdd(member(nil), true) }},
		"none for one that is as it was": {app: inline(), change: func(w *watches) { w.clusterHandler().OnUpdate(member(nil), member(nil)) }},
		"none for what nobody knows":     {app: fromGit(nil), change: func(w *watches) { w.secretChanged(&corev1.ConfigMap{}); w.contentChanged("x") }},
		"none for an object without a label": {
			app: inline(), change: func(w *watches) { w.contentChanged(secret("shop", "login")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			applications := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			if err := applications.Add(test.app); err != nil {
				t.Fatal(err)
			}
			w := &watches{view: &view{applications: applications}, queues: newQueues(""), outcomes: &outcomes{}, drift: &drifts.Board{}, told: &records.Told{}}
			for _, queue := range []queue{w.queues.nearby, w.queues.remote, w.queues.rest} {
				t.Cleanup(queue.ShutDown)
			}
			test.change(w)
			if q := w.queues; q.nearby.Len() != test.nearby || q.remote.Len() != test.remote || q.rest.Len() != test.rest {
				t.Errorf("nearby, remote and the rest have %d, %d, %d; want %d, %d, %d", q.nearby.Len(), q.remote.Len(), q.rest.Len(), test.nearby, test.remote, test.rest)
			}
		})
	}
}

// member is a cluster with labels.
func member(labels map[string]string) *manifold.Cluster {
	return &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: labels}}
}

func TestWhatIsForgottenWithAnApplication(t *testing.T) {
	app := inline()
	w := &watches{queues: newQueues(""), outcomes: &outcomes{}, drift: &drifts.Board{}, told: &records.Told{}}
	for _, queue := range []queue{w.queues.nearby, w.queues.remote, w.queues.rest} {
		t.Cleanup(queue.ShutDown)
	}
	made := &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-v1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(app, v1alpha1.SchemeGroupVersion.WithKind("Application"))},
	}}
	w.outcomes.keep(app.UID, outcome{key: "x", made: made})
	w.told.News(app.UID, "Rendered", "it does not render")
	if w.revisionHandler().OnAdd(made, false); w.outcomes.of(app.UID).made != nil || w.outcomes.of(app.UID).key != "x" {
		t.Errorf("known is %+v, want the revision to be left to the cache, and the rest to be kept", w.outcomes.of(app.UID))
	}
	w.applicationHandler().OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/web", Obj: app})
	if got := w.outcomes.of(app.UID); got.key != "" || w.told.Len() != 0 {
		t.Errorf("known is still %+v, and events of %d applications", got, w.told.Len())
	}
}
