package workloads

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"
	replicasetstore "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"

	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

func changeReplicaSets(storage map[string]rest.Storage) (rest.Lister, error) {
	replicaSets, err := builtin.Lookup[*replicasetstore.REST](storage, "replicasets")
	if err != nil {
		return nil, err
	}
	return replicaSets, builtin.WrapStrategies(replicaSets.Store, func(s builtin.Strategy) builtin.Strategy { return replicaSetStrategy{s} })
}

// replicaSetStrategy takes a mirrored ReplicaSet as Manifold writes it, spec and status at once, so that a change costs one write.
type replicaSetStrategy struct {
	builtin.Strategy
}

func (s replicaSetStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	status := obj.(*apps.ReplicaSet).Status
	s.Strategy.PrepareForCreate(ctx, obj)
	if identity.ByController(ctx) {
		obj.(*apps.ReplicaSet).Status = status
	}
}

func (s replicaSetStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	status := obj.(*apps.ReplicaSet).Status
	s.Strategy.PrepareForUpdate(ctx, obj, old)
	if identity.ByController(ctx) {
		obj.(*apps.ReplicaSet).Status = status
	}
}

// ValidateUpdate lets the mirror of a template follow it in what a user could not change.
func (s replicaSetStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if identity.ByController(ctx) {
		return nil
	}
	return s.Strategy.ValidateUpdate(ctx, obj, old)
}
