package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"
	replicasetstore "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"
)

func changeApps(storage map[string]rest.Storage, o Options) error {
	replicaSets, err := lookup[*replicasetstore.REST](storage, "replicasets")
	if err != nil {
		return err
	}
	if err := wrapStrategies(replicaSets.Store, func(s stockStrategy) stockStrategy { return replicaSetStrategy{s} }); err != nil {
		return err
	}
	o.replicaSets = replicaSets
	return changeWorkloads(storage, apps.GroupName, o)
}

// replicaSetStrategy takes a mirrored ReplicaSet as Manifold writes it, spec and status at once, so that a change costs one write.
type replicaSetStrategy struct {
	stockStrategy
}

func (s replicaSetStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	status := obj.(*apps.ReplicaSet).Status
	s.stockStrategy.PrepareForCreate(ctx, obj)
	if byController(ctx) {
		obj.(*apps.ReplicaSet).Status = status
	}
}

func (s replicaSetStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	status := obj.(*apps.ReplicaSet).Status
	s.stockStrategy.PrepareForUpdate(ctx, obj, old)
	if byController(ctx) {
		obj.(*apps.ReplicaSet).Status = status
	}
}

// ValidateUpdate lets the mirror of a template follow it in what a user could not change.
func (s replicaSetStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if byController(ctx) {
		return nil
	}
	return s.stockStrategy.ValidateUpdate(ctx, obj, old)
}
