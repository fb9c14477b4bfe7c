package manifold

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/names"
)

// strategy is what the kinds have in common: how the registry treats them where nothing about them is special.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func newStrategy(typer runtime.ObjectTyper) strategy {
	return strategy{typer, names.SimpleNameGenerator}
}

// AllowCreateOnUpdate is false: a PUT to a name that is not there is most likely a typing error. Server-side apply creates
// nevertheless.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate lets a PUT without a resource version replace whatever is there, as for most built-in kinds.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize leaves objects as they are: they have one form only.
func (strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate has none.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate has none.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
