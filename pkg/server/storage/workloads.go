package storage

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	daemonsetstore "k8s.io/kubernetes/pkg/registry/apps/daemonset/storage"
	deploymentstore "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"
	replicasetstore "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"
	statefulsetstore "k8s.io/kubernetes/pkg/registry/apps/statefulset/storage"
	jobstore "k8s.io/kubernetes/pkg/registry/batch/job/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// changeWorkloads has the workloads of an API group placed while they are written, and keeps what Manifold alone writes when somebody
// else updates their status.
func changeWorkloads(storage map[string]rest.Storage, group string, o Options) error {
	for _, kind := range projection.Workloads() {
		if kind.Resource.Group != group {
			continue
		}
		resource := kind.Resource.Resource
		store, err := storeOf(resource, storage[resource])
		if err != nil {
			return err
		}
		strategy := placedStrategy{reader: reader{kind}, placer: o.Placer, unheld: resource == "pods"}
		if resource == "deployments" && o.replicaSets != nil {
			strategy.copied = rolledBack(o.replicaSets)
		}
		if err := wrapStrategies(store, func(s stockStrategy) stockStrategy {
			strategy.stockStrategy = s
			return strategy
		}); err != nil {
			return err
		}
		status, err := lookup[stockStatus](storage, resource+"/status")
		if err != nil {
			return err
		}
		storage[resource+"/status"] = &placedStatus{status}
		if strategy.unheld {
			continue
		}
		whole, err := lookup[workloadStorage](storage, resource)
		if err != nil {
			return err
		}
		storage[resource] = &awaitedDeletion{workloadStorage: whole, patience: deletionPatience}
	}
	return nil
}

// storeOf returns the store behind a resource's storage, which each kind embeds in a type of its own.
func storeOf(resource string, storage rest.Storage) (*genericregistry.Store, error) {
	switch s := storage.(type) {
	case *deploymentstore.REST:
		return s.Store, nil
	case *statefulsetstore.REST:
		return s.Store, nil
	case *daemonsetstore.REST:
		return s.Store, nil
	case *replicasetstore.REST:
		return s.Store, nil
	case *jobstore.REST:
		return s.Store, nil
	case *controllerstore.REST:
		return s.Store, nil
	case *podstore.REST:
		return s.Store, nil
	}
	return nil, fmt.Errorf("storage of %s is a %T, which the pinned Kubernetes version does not have", resource, storage)
}

// stockStatus is what the status endpoint of every built-in workload offers.
type stockStatus interface {
	rest.Storage
	rest.Patcher
	rest.ResetFieldsStrategy
	rest.TableConvertor
}

// placedStatus keeps what Manifold alone writes when somebody else updates the status.
type placedStatus struct {
	stockStatus
}

// Update implements rest.Updater.
func (s *placedStatus) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options updateOptions,
) (runtime.Object, bool, error) {
	if !writesMirrors(ctx) {
		info = rest.WrapUpdatedObjectInfo(info, keepFromOld(keepManaged))
	}
	return s.stockStatus.Update(ctx, name, info, createValidation, updateValidation, forceAllowCreate, options)
}

// reader reads objects of a kind in the internal version that strategies see.
type reader struct {
	kind projection.Kind
}

// workload returns what placement needs.
func (r reader) workload(obj runtime.Object) (placement.Workload, error) {
	versioned, err := r.versioned(obj)
	if err != nil {
		return placement.Workload{}, err
	}
	return r.kind.WorkloadOf(versioned)
}

// mirror reports whether the object shows what lives below.
func (r reader) mirror(obj runtime.Object) bool {
	versioned, err := r.versioned(obj)
	return err == nil && r.kind.Mirror(versioned)
}

// versioned returns the object in the version that is projected. It shares memory with obj; nobody changes it.
func (r reader) versioned(obj runtime.Object) (projection.Object, error) {
	out := r.kind.New()
	if err := legacyscheme.Scheme.Convert(obj, out, nil); err != nil {
		return nil, fmt.Errorf("read a %s from a %T: %w", r.kind.GVK.Kind, obj, err)
	}
	return out, nil
}
