package syncer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// A controller takes over what its selector meets and nobody controls. Controllers run below, so it is there that a ReplicaSet which the
// user made comes to belong to a Deployment. From then on it is the Deployment's, above as below: a mirror, whose replicas are not ours.

// handedOver reports whether a projection is a controller's business below, so that it is neither put back nor removed while the object
// above exists. The error is that of one that a stranger's controller has taken.
func (s *Syncer) handedOver(ctx context.Context, kind projection.Kind, above, live projection.Object) (bool, error) {
	if !kind.Yields || above == nil || !kind.Lives(above) {
		return false, nil
	}
	if live == nil {
		return s.owners.Maker(identity.KeyOf(kind, above)) != nil, nil
	}
	ref := metav1.GetControllerOf(live)
	if ref == nil {
		// The other shares of what one cluster's controller took over may still be taken by those of theirs.
		return kind.Mirror(above) && s.controllerComes(above), nil
	}
	if s.owners.Adopter(live) != nil {
		return true, nil
	}
	return true, s.stranged(ctx, live, *ref)
}

// stranged words what it means that a controller which we do not know of has taken a projection over.
func (s *Syncer) stranged(ctx context.Context, live projection.Object, by metav1.OwnerReference) error {
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(by.APIVersion, by.Kind))
	if ok {
		controller, err := s.writer(kind, live.GetNamespace()).Client.Get(ctx, by.Name)
		if err != nil {
			return err
		}
		if controller == nil || controller.GetLabels()[v1alpha1.LabelLogicalCluster] == s.target.LogicalCluster {
			return errNotYet // our cache is behind
		}
	}
	return &writer.ConflictError{Reason: fmt.Sprintf("%s %s, which Manifold does not own, has taken it over there by its selector", by.Kind, by.Name)}
}

// controllerComes reports whether what controls a mirror above is to run in this cluster.
func (s *Syncer) controllerComes(mirror projection.Object) bool {
	ref := metav1.GetControllerOf(mirror)
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !ok {
		return false
	}
	controller := s.Upstream.Get(identity.Key{Resource: kind.Resource, Namespace: mirror.GetNamespace(), Name: ref.Name})
	if controller == nil || controller.GetUID() != ref.UID {
		return false
	}
	_, comes := identity.DecisionOf(controller)[s.cluster]
	return comes
}

// Adopter returns the reference to the workload above whose controller has taken over the projection of another one in the cluster, or
// nil. The projection may carry the marks of what took it over by now: the controller of a Deployment copies them. One that is being
// deleted takes nothing over.
func (s *Syncer) Adopter(key identity.Key, above projection.Object) *metav1.OwnerReference {
	var by *identity.Workload
	if live := s.below.Get(key); live != nil {
		by = s.owners.Adopter(live)
		marked := live.GetAnnotations()[v1alpha1.AnnotationUID]
		if by != nil && marked != string(above.GetUID()) && marked != string(by.GetUID()) {
			return nil
		}
	} else {
		by = s.owners.Maker(key)
	}
	if by == nil || by.GetDeletionTimestamp() != nil {
		return nil
	}
	return metav1.NewControllerRef(by.Object, by.Kind.GVK)
}
