package syncer

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	return g.eventAbout(cluster, event.InvolvedObject)
}

// UpdateEvent returns why a cluster may not write event over stored, nil if it may.
func (g Guard) UpdateEvent(cluster string, event, stored *corev1.Event) error {
	if from := stored.Annotations[v1alpha1.AnnotationCluster]; from != cluster {
		return fmt.Errorf("it is no event of cluster %q", cluster)
	}
	return g.CreateEvent(cluster, event)
}

// eventAbout returns why events of a cluster cannot be about an object above, nil if they can.
func (u *Upstream) eventAbout(cluster string, ref corev1.ObjectReference) error {
	kind, ok := kindNamed(ref)
	if !ok {
		return errors.New("involvedObject: clusters have nothing of that kind")
	}
	name := cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name}
	above := u.Get(identity.Key{Resource: kind.Resource, Namespace: ref.Namespace, Name: ref.Name})
	has := false
	switch {
	case kind.Resource == podResource:
		// The first events of a pod are about as early as its mirror.
		has = u.PodOf(name, ref.UID, cluster) != nil
	case above == nil || above.GetUID() != ref.UID:
	case kind.Resource == claimResource && identity.ShownFrom(above.(*corev1.PersistentVolumeClaim)) != "":
		has = identity.ShownFrom(above.(*corev1.PersistentVolumeClaim)) == cluster
	case kind.Workload:
		decider, known := u.Decider(kind, above)
		has = known && identity.Involves(decider.Object, cluster)
	default:
		has = u.anyNeeding(identity.KeyOf(kind, above), func(w identity.Workload) bool { return identity.Involves(w.Object, cluster) }) || pinnedTo(kind, above, cluster) || u.settledIn(kind, above, cluster)
	}
	if !has {
		return fmt.Errorf("involvedObject: cluster %q has no %s %s with UID %.64s", cluster, ref.Kind, name, ref.UID)
	}
	return nil
}

// mirrorOfEvent returns an event as it reads above, about the object there.
func (s *Syncer) mirrorOfEvent(event *corev1.Event, about corev1.ObjectReference) *corev1.Event {
	out := event.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Namespace: event.Namespace, Name: mirror.EventName(event.Name, s.cluster)}
	mirror.Event(out, about, s.cluster)
	return out
}
