package guard

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
)

// CreateEvent returns why a cluster may not have an event shown, nil if it may: about what it has of ours.
func (g Guard) CreateEvent(cluster string, event *corev1.Event) error {
	if err := g.Open(event.Namespace); err != nil {
		return err
	}
	if err := mirror.CheckEvent(event, cluster); err != nil {
		return err
	}
	return g.EventAbout(cluster, event.InvolvedObject)
}

// UpdateEvent returns why a cluster may not write event over stored, nil if it may.
func (g Guard) UpdateEvent(cluster string, event, stored *corev1.Event) error {
	if from := stored.Annotations[v1alpha1.AnnotationCluster]; from != cluster {
		return fmt.Errorf("it is not an event of cluster %q", cluster)
	}
	return g.CreateEvent(cluster, event)
}

// EventAbout returns why events of a cluster cannot be about an object above, nil if they can.
func (g Guard) EventAbout(cluster string, ref corev1.ObjectReference) error {
	kind, ok := identity.KindNamed(ref)
	if !ok {
		return errors.New("involvedObject: clusters have no objects of that kind")
	}
	name := cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name}
	above := g.Get(identity.Key{Resource: kind.Resource, Namespace: ref.Namespace, Name: ref.Name})
	has := false
	switch {
	case kind.Resource == identity.Pods:
		// The first events of a pod are about as early as its mirror.
		has = g.PodOf(name, ref.UID, cluster) != nil
	case above == nil || above.GetUID() != ref.UID:
	case kind.Resource == identity.Claims && identity.ShownFrom(above.(*corev1.PersistentVolumeClaim)) != "":
		has = identity.ShownFrom(above.(*corev1.PersistentVolumeClaim)) == cluster
	case kind.Workload:
		decider, known := g.Decider(kind, above)
		has = known && identity.Involves(decider.Object, cluster)
	default:
		has = g.NeededIn(kind, above, cluster)
	}
	if !has {
		return fmt.Errorf("involvedObject: cluster %q has no %s %s with UID %.64s", cluster, ref.Kind, name, ref.UID)
	}
	return nil
}
