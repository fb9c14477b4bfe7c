package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var revisionResource = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// departures are the StatefulSets that have just gone, each kept known by an object for a while: a claim that a cluster's controller made at the last
// moment is shown then, also after a restart. In a namespace that goes, all of that goes too.
type departures struct {
	revisions  cache.Store
	namespaces cache.Store
}

// watchDepartures registers with the informers. What is there has its end noted.
func (c *Controller) watchDepartures() error {
	informer := c.Kube.Apps().V1().ControllerRevisions().Informer()
	c.departures = departures{revisions: informer.GetStore(), namespaces: c.Kube.Core().V1().Namespaces().Informer().GetStore()}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if revision, ok := obj.(*appsv1.ControllerRevision); ok && records.IsDeparture(revision) {
			c.queue.AddAfter(task{Key: identity.Key{Resource: revisionResource, Namespace: revision.Namespace, Name: revision.Name}}, c.leftOf(revision))
		}
	}})
	if err != nil {
		return fmt.Errorf("watch what StatefulSets have left: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced, c.Kube.Core().V1().Namespaces().Informer().HasSynced)
	return nil
}

// leftOf is for how long a departure is still to be known.
func (c *Controller) leftOf(revision *appsv1.ControllerRevision) time.Duration {
	return revision.CreationTimestamp.Add(records.DepartedFor).Sub(c.Clock.Now())
}

// depart keeps a StatefulSet known that is about to go.
func (c *Controller) depart(ctx context.Context, in summary.Object) error {
	set, ok := in.(*appsv1.StatefulSet)
	if !ok || len(set.Spec.VolumeClaimTemplates) == 0 || c.departures.namespaceGoes(set.Namespace) {
		return nil
	}
	departure, err := records.Departure(set)
	if err != nil {
		return err
	}
	_, err = c.Client.AppsV1().ControllerRevisions(departure.Namespace).Create(ctx, departure, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // whoever takes away the namespace of the system should not hold up what goes
	case err != nil:
		return fmt.Errorf("keep StatefulSet %s/%s known for its last claims: %w", set.Namespace, set.Name, err)
	}
	return nil
}

func (d departures) namespaceGoes(name string) bool {
	obj, exists, err := d.namespaces.GetByKey(name)
	if err != nil || !exists {
		return false
	}
	namespace, ok := obj.(*corev1.Namespace)
	return ok && namespace.DeletionTimestamp != nil
}

// forget has a departure known no longer than for its while.
func (c *Controller) forget(ctx context.Context, key identity.Key) error {
	obj, exists, err := c.departures.revisions.GetByKey(key.Namespace + "/" + key.Name)
	if err != nil || !exists {
		return err
	}
	revision, ok := obj.(*appsv1.ControllerRevision)
	if !ok || !records.IsDeparture(revision) {
		return nil
	}
	if left := c.leftOf(revision); left > 0 {
		c.queue.AddAfter(task{Key: key}, left)
		return nil
	}
	err = c.Client.AppsV1().ControllerRevisions(key.Namespace).Delete(ctx, key.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(revision.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
