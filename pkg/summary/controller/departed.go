package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var revisionResource = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// departures are the StatefulSets that have just gone, each kept known by an object for a while: a claim that a cluster's controller made at the last
// moment is shown then, also after a restart. In a namespace that goes, all of that goes too.
type departures struct {
	client     kubernetes.Interface
	clock      clock.PassiveClock
	revisions  cache.Store
	namespaces cache.Store
	synced     []cache.InformerSynced
	// again has a departure looked at again after a while.
	again func(key identity.Key, after time.Duration)
}

// watchDepartures registers with the informers. What is there has its end noted.
func watchDepartures(o Options, again func(key identity.Key, after time.Duration)) (*departures, error) {
	informer, namespaces := o.Kube.Apps().V1().ControllerRevisions().Informer(), o.Kube.Core().V1().Namespaces().Informer()
	d := &departures{client: o.Client, clock: o.Clock, revisions: informer.GetStore(), namespaces: namespaces.GetStore(), again: again}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if revision, ok := obj.(*appsv1.ControllerRevision); ok && records.IsDeparture(revision) {
			d.again(identity.Key{Resource: revisionResource, Namespace: revision.Namespace, Name: revision.Name}, d.left(revision))
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("watch what StatefulSets have left: %w", err)
	}
	d.synced = []cache.InformerSynced{registration.HasSynced, namespaces.HasSynced}
	return d, nil
}

// left is for how long a departure is still to be known.
func (d *departures) left(revision *appsv1.ControllerRevision) time.Duration {
	return revision.CreationTimestamp.Add(records.DepartedFor).Sub(d.clock.Now())
}

// record keeps a StatefulSet known that is about to go.
func (d *departures) record(ctx context.Context, in summary.Object) error {
	set, ok := in.(*appsv1.StatefulSet)
	if !ok || len(set.Spec.VolumeClaimTemplates) == 0 || d.namespaceGoes(set.Namespace) {
		return nil
	}
	departure, err := records.Departure(set)
	if err != nil {
		return err
	}
	_, err = d.client.AppsV1().ControllerRevisions(departure.Namespace).Create(ctx, departure, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // whoever takes away the namespace of the system should not hold up what goes
	case err != nil:
		return fmt.Errorf("keep StatefulSet %s/%s known for its last claims: %w", set.Namespace, set.Name, err)
	}
	return nil
}

func (d *departures) namespaceGoes(name string) bool {
	obj, exists, err := d.namespaces.GetByKey(name)
	if err != nil || !exists {
		return false
	}
	namespace, ok := obj.(*corev1.Namespace)
	return ok && namespace.DeletionTimestamp != nil
}

// forget has a departure known no longer than for its while.
func (d *departures) forget(ctx context.Context, key identity.Key) error {
	obj, exists, err := d.revisions.GetByKey(key.Namespace + "/" + key.Name)
	if err != nil || !exists {
		return err
	}
	revision, ok := obj.(*appsv1.ControllerRevision)
	if !ok || !records.IsDeparture(revision) {
		return nil
	}
	if left := d.left(revision); left > 0 {
		d.again(key, left)
		return nil
	}
	err = d.client.AppsV1().ControllerRevisions(key.Namespace).Delete(ctx, key.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(revision.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
