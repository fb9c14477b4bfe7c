// Package workloads changes the storage of workloads: they are placed as they are written, and a deletion is answered when clusters have let go.
package workloads

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/batch"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// Placer decides where a workload runs. It never blocks on a cluster.
type Placer interface {
	// Place returns the decision for w, whose present one is current. It returns false when the clusters are not known yet.
	Place(w placement.Workload, current placement.Decision) (placement.Result, bool)
	// Placed is told what was decided while the object is on its way to storage, so that decisions made before a watch shows it
	// take it into account.
	Placed(w placement.Workload, decision placement.Decision)
}

// Change has the workloads of an API group placed while they are written, and keeps what Manifold alone writes when somebody
// else updates their status. How they stand can be read of each.
func Change(storage map[string]rest.Storage, group string, placer Placer, fleets Fleets) error {
	var copied func(ctx context.Context, deployment runtime.Object, decision string) bool
	switch group {
	case apps.GroupName:
		replicaSets, err := changeReplicaSets(storage)
		if err != nil {
			return err
		}
		copied = rolledBack(replicaSets)
	case batch.GroupName:
		if err := changeCronJobs(storage); err != nil {
			return err
		}
	}
	for _, kind := range projection.Workloads() {
		if kind.Resource.Group != group {
			continue
		}
		resource := kind.Resource.Resource
		store, err := storeOf(resource, storage[resource])
		if err != nil {
			return err
		}
		strategy := placedStrategy{reader: reader{kind}, placer: placer, unheld: resource == "pods"}
		if resource == "deployments" {
			strategy.copied = copied
		}
		if err := builtin.WrapStrategies(store, func(s builtin.Strategy) builtin.Strategy {
			strategy.Strategy = s
			return strategy
		}); err != nil {
			return err
		}
		status, err := builtin.Lookup[builtin.Status](storage, resource+"/status")
		if err != nil {
			return err
		}
		storage[resource+"/status"] = &placedStatus{status}
		if err := addFleet(storage, resource, strategy.reader, fleets); err != nil {
			return err
		}
		if strategy.unheld {
			continue
		}
		whole, err := builtin.Lookup[workloadStorage](storage, resource)
		if err != nil {
			return err
		}
		storage[resource] = &awaitedDeletion{workloadStorage: whole, patience: await.DeletionPatience}
	}
	return nil
}

// storeOf returns the store behind a resource's storage, which each kind embeds in a type of its own.
func storeOf(resource string, storage rest.Storage) (*genericregistry.Store, error) {
	if changed, ok := storage.(interface{ Stock() *genericregistry.Store }); ok { // pods
		return changed.Stock(), nil
	}
	if embeds := reflect.Indirect(reflect.ValueOf(storage)); embeds.Kind() == reflect.Struct {
		if field := embeds.FieldByName("Store"); field.IsValid() {
			if store, ok := field.Interface().(*genericregistry.Store); ok {
				return store, nil
			}
		}
	}
	return nil, fmt.Errorf("storage of %s is a %T, which the pinned Kubernetes version does not have", resource, storage)
}

// placedStatus keeps what Manifold alone writes when somebody else updates the status.
type placedStatus struct {
	builtin.Status
}

// Update implements rest.Updater.
func (s *placedStatus) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	if !identity.WritesMirrors(ctx) {
		info = rest.WrapUpdatedObjectInfo(info, builtin.KeepFromOld(metadata.KeepManaged))
	}
	return s.Status.Update(ctx, name, info, createValidation, updateValidation, forceAllowCreate, options)
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
