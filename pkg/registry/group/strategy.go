package group

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy is what the kinds have in common: how the registry treats them where nothing about them is special.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NewStrategy returns it for objects of the kinds that typer knows.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{typer, names.SimpleNameGenerator}
}

// AllowCreateOnUpdate is false: a PUT to a name that is not there is most likely a typing error. Server-side apply creates
// nevertheless.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate lets a PUT without a resource version replace whatever is there, as for most built-in kinds.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize leaves objects as they are: they have one form only.
func (Strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate has none.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate has none.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// ResetFields is a set of fields that a strategy leaves as they are, so that who applies them does not come to own them.
func ResetFields(version schema.GroupVersion, names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(version.String()): set}
}
