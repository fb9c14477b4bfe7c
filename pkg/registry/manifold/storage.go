package manifold

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// REST is the store of one kind.
type REST struct {
	*genericregistry.Store
	shortNames []string
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames are what kubectl takes in place of the resource's name.
func (r *REST) ShortNames() []string { return r.shortNames }

// Categories make "kubectl get manifold" list all of Manifold's own kinds.
func (r *REST) Categories() []string { return []string{"manifold"} }

// writeStrategy says how objects of a kind are created, changed and deleted.
type writeStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
}

// kind is a row of the table of kinds: what the generic store cannot know about one.
type kind struct {
	plural, singular string
	shortName        string
	object           func() runtime.Object
	list             func() runtime.Object
	strategy         writeStrategy
	// status is nil for a kind that has none.
	status  rest.UpdateResetFieldsStrategy
	columns rest.TableConvertor
}

func kinds(typer runtime.ObjectTyper) []kind {
	return []kind{
		{
			plural: "clusters", singular: "cluster", shortName: "mcl",
			object:   func() runtime.Object { return &v1alpha1.Cluster{} },
			list:     func() runtime.Object { return &v1alpha1.ClusterList{} },
			strategy: clusterStrategy{newStrategy(typer)},
			status:   clusterStatusStrategy{clusterStrategy{newStrategy(typer)}},
			columns:  clusterColumns(),
		},
		{
			plural: "placementpolicies", singular: "placementpolicy", shortName: "pp",
			object:   func() runtime.Object { return &v1alpha1.PlacementPolicy{} },
			list:     func() runtime.Object { return &v1alpha1.PlacementPolicyList{} },
			strategy: placementPolicyStrategy{newStrategy(typer)},
			status:   placementPolicyStatusStrategy{placementPolicyStrategy{newStrategy(typer)}}, columns: placementPolicyColumns(),
		},
		{
			plural: "clusterplacementpolicies", singular: "clusterplacementpolicy", shortName: "cpp",
			object:   func() runtime.Object { return &v1alpha1.ClusterPlacementPolicy{} },
			list:     func() runtime.Object { return &v1alpha1.ClusterPlacementPolicyList{} },
			strategy: clusterPlacementPolicyStrategy{newStrategy(typer)},
			status:   clusterPlacementPolicyStatusStrategy{clusterPlacementPolicyStrategy{newStrategy(typer)}}, columns: clusterPlacementPolicyColumns(),
		},
	}
}

func newREST(kind kind, options generic.RESTOptionsGetter) (*REST, error) {
	store := &genericregistry.Store{
		NewFunc:                   kind.object,
		NewListFunc:               kind.list,
		DefaultQualifiedResource:  v1alpha1.Resource(kind.plural),
		SingularQualifiedResource: v1alpha1.Resource(kind.singular),
		CreateStrategy:            kind.strategy,
		UpdateStrategy:            kind.strategy,
		DeleteStrategy:            kind.strategy,
		TableConvertor:            kind.columns,
	}
	if reset, ok := kind.strategy.(rest.ResetFieldsStrategy); ok {
		store.ResetFieldsStrategy = reset
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, err
	}
	return &REST{Store: store, shortNames: []string{kind.shortName}}, nil
}

// StatusREST is the status of the objects in a store.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
	_ rest.TableConvertor      = &StatusREST{}
)

func newStatusREST(objects *REST, strategy rest.UpdateResetFieldsStrategy) *StatusREST {
	store := *objects.Store
	store.CreateStrategy, store.DeleteStrategy = nil, nil
	store.UpdateStrategy, store.ResetFieldsStrategy = strategy, strategy
	return &StatusREST{store: &store}
}

// New returns an empty object to decode a request into.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store belongs to the objects.
func (r *StatusREST) Destroy() {}

// Get returns the object with its status. Patches start from it.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of an object that exists. It creates none, whatever forceAllowCreate says: server-side apply sets that.
func (r *StatusREST) Update(
	ctx context.Context, name string, object rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, object, createValidation, updateValidation, false, options)
}

// GetResetFields names the fields that an update of the status leaves as they are.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable shows a status as its object is shown.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
