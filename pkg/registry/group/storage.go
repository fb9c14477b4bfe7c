package group

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// REST is the store of one kind.
type REST struct {
	*genericregistry.Store
	shortNames, categories []string
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames are what kubectl takes in place of the resource's name.
func (r *REST) ShortNames() []string { return r.shortNames }

// Categories are what kubectl takes in place of the names of several resources.
func (r *REST) Categories() []string { return r.categories }

// WriteStrategy says how objects of a kind are created, changed and deleted.
type WriteStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
}

// Kind is a row of the table of kinds: what the generic store cannot know about one.
type Kind struct {
	Plural, Singular string
	ShortName        string
	// Uncategorized keeps the kind out of the group's categories, which all who may look at the others list.
	Uncategorized bool
	Object        func() runtime.Object
	List          func() runtime.Object
	Strategy      WriteStrategy
	// Status is nil for a kind that has none.
	Status  rest.UpdateResetFieldsStrategy
	Columns rest.TableConvertor
	// Written is called with an object that was created or changed, before who did so is answered. Optional.
	Written func(runtime.Object)
	// Subresources are made over the store of the objects, by name. Optional.
	Subresources func(objects *REST) map[string]rest.Storage
}

func (g Group) newREST(kind Kind, options generic.RESTOptionsGetter) (*REST, error) {
	store := &genericregistry.Store{
		NewFunc:                   kind.Object,
		NewListFunc:               kind.List,
		DefaultQualifiedResource:  g.resource(kind.Plural),
		SingularQualifiedResource: g.resource(kind.Singular),
		CreateStrategy:            kind.Strategy,
		UpdateStrategy:            kind.Strategy,
		DeleteStrategy:            kind.Strategy,
		TableConvertor:            kind.Columns,
	}
	if reset, ok := kind.Strategy.(rest.ResetFieldsStrategy); ok {
		store.ResetFieldsStrategy = reset
	}
	if kind.Written != nil {
		store.AfterCreate = func(object runtime.Object, options *metav1.CreateOptions) {
			tellStored(kind.Written, object, options.DryRun)
		}
		store.AfterUpdate = func(object runtime.Object, options *metav1.UpdateOptions) {
			tellStored(kind.Written, object, options.DryRun)
		}
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, err
	}
	made := &REST{Store: store, shortNames: []string{kind.ShortName}, categories: g.Categories}
	if kind.Uncategorized {
		made.categories = nil
	}
	return made, nil
}

// tellStored tells of an object, unless that is what would be stored.
func tellStored(written func(runtime.Object), object runtime.Object, dryRun []string) {
	if len(dryRun) == 0 {
		written(object)
	}
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
	store.AfterCreate, store.AfterUpdate = nil, nil
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
