package workloads

import (
	"testing"

	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	deploymentstrategy "k8s.io/kubernetes/pkg/registry/apps/deployment"

	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

func TestBothStrategiesAreWrapped(t *testing.T) {
	store := &genericregistry.Store{CreateStrategy: deploymentstrategy.Strategy, UpdateStrategy: deploymentstrategy.Strategy}
	err := builtin.WrapStrategies(store, func(s builtin.Strategy) builtin.Strategy { return placedStrategy{Strategy: s} })
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := store.CreateStrategy.(placedStrategy); !ok {
		t.Errorf("create strategy is a %T", store.CreateStrategy)
	}
	if _, ok := store.UpdateStrategy.(placedStrategy); !ok {
		t.Errorf("update strategy is a %T", store.UpdateStrategy)
	}
	store.UpdateStrategy = nil
	if err := builtin.WrapStrategies(store, func(s builtin.Strategy) builtin.Strategy { return s }); err == nil {
		t.Error("a store without an update strategy passes")
	}
}
