package applications

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/drifts"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/records"
)

// watches have applications looked at when something changes that they go by.
type watches struct {
	view     *view
	queues   *queues
	outcomes *outcomes
	told     *records.Told
	drift    *drifts.Board
	// synced tell whether all has been seen that there was in the beginning.
	synced []cache.InformerSynced
}

// add registers with the informers, which the caller starts afterwards. Selected are those of kinds that sources may select.
func (w *watches) add(o Options, selected []cache.SharedIndexInformer) error {
	return errors.Join(w.addOwn(o), w.addContents(), w.addSelected(selected))
}

func (w *watches) addOwn(o Options) error {
	w.drift.Watch(w.queues.rest.Add)
	o.Live.Watch(w.queues.rest.Add)
	own := o.Own.Delivery().V1alpha1()
	for _, row := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{own.Applications().Informer(), w.applicationHandler()},
		{own.ApplicationRevisions().Informer(), w.revisionHandler()},
		{own.Releases().Informer(), all(func(obj any) { w.queues.rest.Add(applicationOf(obj)) })},
		{o.Kube.Core().V1().Secrets().Informer(), all(w.secretChanged)},
		{o.Own.Manifold().V1alpha1().Clusters().Informer(), w.clusterHandler()},
	} {
		registration, err := row.informer.AddEventHandler(row.handler)
		if err != nil {
			return fmt.Errorf("watch what applications depend on: %w", err)
		}
		w.synced = append(w.synced, registration.HasSynced)
	}
	return nil
}

// all hands every change on, with what is known of the object last.
func all(changed func(obj any)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: func(obj any) { changed(caches.Last(obj)) },
	}
}

// addContents registers with the informers of workloads, and follows what is of custom kinds.
func (w *watches) addContents() error {
	for _, of := range w.view.contents {
		if !of.kind.Workload {
			continue
		}
		registration, err := of.informer.AddEventHandler(all(w.contentChanged))
		if err != nil {
			return fmt.Errorf("watch %s: %w", of.kind.Resource.Resource, err)
		}
		w.synced = append(w.synced, registration.HasSynced)
	}
	objects.WatchCustoms(w.view.customs, func(name cache.ObjectName) { w.queues.rest.AddAfter(name, pause) })
	return nil
}

// addSelected has sources looked at again whose objects users have changed.
func (w *watches) addSelected(selected []cache.SharedIndexInformer) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { w.selectedChanged(obj, obj) }, UpdateFunc: w.selectedChanged,
		DeleteFunc: func(obj any) { w.selectedChanged(caches.Last(obj), caches.Last(obj)) },
	}
	for _, informer := range selected {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watch what applications select: %w", err)
		}
		w.synced = append(w.synced, registration.HasSynced)
	}
	return nil
}

func (w *watches) applicationHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { w.queues.look(obj.(*v1alpha1.Application)) },
		UpdateFunc: func(old, obj any) {
			before, app := old.(*v1alpha1.Application), obj.(*v1alpha1.Application)
			if before.Generation != app.Generation || before.UID != app.UID ||
				before.Annotations[v1alpha1.AnnotationRefresh] != app.Annotations[v1alpha1.AnnotationRefresh] {
				w.queues.look(app)
				return
			}
			w.queues.rest.Add(cache.MetaObjectToName(app))
		},
		DeleteFunc: func(obj any) {
			app := caches.Last(obj).(*v1alpha1.Application)
			w.outcomes.forget(app.UID)
			w.drift.Forget(app.UID)
			w.told.Forget(app.UID)
		},
	}
}

// clusterHandler shows that a cluster has fallen silent, or answers again, in the applications that run there, and in all that it has joined, left, or got
// other labels: it may be one of their targets now, or none any more. One that answers may be what a target waits for that follows its clusters at once.
func (w *watches) clusterHandler() cache.ResourceEventHandler {
	everywhere := func() {
		for _, app := range caches.All[*v1alpha1.Application](w.view.applications) {
			w.queues.rest.Add(cache.MetaObjectToName(app))
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initially bool) {
			if !initially { // each application is looked at in the beginning
				everywhere()
			}
		},
		DeleteFunc: func(any) { everywhere() },
		UpdateFunc: func(old, obj any) {
			before, cluster := old.(*manifold.Cluster), obj.(*manifold.Cluster)
			if !labels.Equals(before.Labels, cluster.Labels) || !ready(before) && ready(cluster) && w.view.follow() {
				everywhere()
				return
			}
			if observe.Silent(before) == observe.Silent(cluster) {
				return
			}
			for _, app := range caches.Indexed[*v1alpha1.Application](w.view.applications, byCluster, cluster.Name) {
				w.queues.rest.Add(cache.MetaObjectToName(app))
			}
		},
	}
}

func (w *watches) revisionHandler() cache.ResourceEventHandler {
	return all(func(obj any) {
		revision := obj.(*v1alpha1.ApplicationRevision)
		if owner := metav1.GetControllerOfNoCopy(revision); owner != nil {
			w.outcomes.seen(owner.UID, revision.Name)
		}
		w.queues.rest.Add(applicationOf(revision))
	})
}

// secretChanged looks again at repositories that a Secret has credentials for.
func (w *watches) secretChanged(obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	for _, app := range caches.Indexed[*v1alpha1.Application](w.view.applications, cache.NamespaceIndex, secret.Namespace) {
		if git := app.Spec.Source.Git; git != nil && (git.SecretRef != nil && git.SecretRef.Name == secret.Name || git.Webhook != nil && git.Webhook.SecretRef.Name == secret.Name) {
			w.queues.look(app)
		}
	}
}

// selectedChanged looks at the sources that select an object, or did. Most namespaces have none, and a status is no part of one.
func (w *watches) selectedChanged(old, obj any) {
	before, ok := old.(metav1.Object)
	now, ok2 := obj.(metav1.Object)
	if !ok || !ok2 {
		return
	}
	for _, app := range caches.Indexed[*v1alpha1.Application](w.view.applications, bySelection, now.GetNamespace()) {
		selector, err := metav1.LabelSelectorAsSelector(&app.Spec.Source.Selector.LabelSelector)
		if err != nil {
			continue // validation refuses such an application
		}
		if selector.Matches(labels.Set(before.GetLabels())) || selector.Matches(labels.Set(now.GetLabels())) {
			w.queues.nearby.AddAfter(cache.MetaObjectToName(app), pause)
		}
	}
}

// contentChanged shows what clusters report. What comes at once is shown at once.
func (w *watches) contentChanged(obj any) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	if name := object.GetLabels()[v1alpha1.LabelApplication]; name != "" {
		w.queues.rest.AddAfter(cache.ObjectName{Namespace: object.GetNamespace(), Name: name}, pause)
	}
}
