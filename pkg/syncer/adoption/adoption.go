// Package adoption tells what controllers of a cluster have taken over there.
package adoption

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// A controller takes over what its selector meets and nobody controls. Controllers run below, so it is there that a ReplicaSet which the
// user made comes to belong to a Deployment. From then on it is the Deployment's, above as below: a mirror, whose replicas are not ours.

// Controllers tells what controllers of one cluster have taken over there.
type Controllers struct {
	*trust.Cluster
	Above  *logical.Cluster
	Owners *mirrors.Owners
	// Read reads an object of the cluster, nil if there is none.
	Read func(ctx context.Context, kind projection.Kind, namespace, name string) (projection.Object, error)
}

// HandedOver reports whether a projection is a controller's business below, so that it is neither put back nor removed while the object
// above exists. The error is that of one that a stranger's controller has taken.
func (a *Controllers) HandedOver(ctx context.Context, kind projection.Kind, above, live projection.Object) (bool, error) {
	if !kind.Yields || above == nil || !kind.Lives(above) {
		return false, nil
	}
	if live == nil {
		return a.Owners.Maker(identity.KeyOf(kind, above)) != nil, nil
	}
	ref := metav1.GetControllerOf(live)
	if ref == nil {
		// The other shares of what one cluster's controller took over may still be taken by those of theirs.
		return kind.Mirror(above) && a.controllerComes(above), nil
	}
	if a.Owners.Adopter(live) != nil {
		return true, nil
	}
	return true, a.stranged(ctx, live, *ref)
}

// stranged words what it means that a controller which we do not know of has taken a projection over.
func (a *Controllers) stranged(ctx context.Context, live projection.Object, by metav1.OwnerReference) error {
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(by.APIVersion, by.Kind))
	if ok {
		controller, err := a.Read(ctx, kind, live.GetNamespace(), by.Name)
		if err != nil {
			return err
		}
		if controller == nil || controller.GetLabels()[v1alpha1.LabelLogicalCluster] == a.LogicalCluster {
			return writer.ErrNotYet // our cache is behind
		}
	}
	return &writer.ConflictError{Reason: fmt.Sprintf("%s %s, which Manifold does not own, has taken it over there by its selector", by.Kind, by.Name)}
}

// controllerComes reports whether what controls a mirror above is to run in this cluster.
func (a *Controllers) controllerComes(mirror projection.Object) bool {
	ref := metav1.GetControllerOf(mirror)
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !ok {
		return false
	}
	controller := a.Above.Get(identity.Key{Resource: kind.Resource, Namespace: mirror.GetNamespace(), Name: ref.Name})
	if controller == nil || controller.GetUID() != ref.UID {
		return false
	}
	_, comes := identity.DecisionOf(controller)[a.Name]
	return comes
}
