package delivery

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// notedStrategy is for what controllers note down beside releases: the parts of logs, and what plugins keep.
type notedStrategy[T metav1.Object] struct {
	group.Strategy
	validate func(T) field.ErrorList
	update   func(object, old T) field.ErrorList
}

func (notedStrategy[T]) NamespaceScoped() bool { return true }

func (notedStrategy[T]) PrepareForCreate(_ context.Context, object runtime.Object) {
	object.(T).SetGeneration(1)
}

func (notedStrategy[T]) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// AllowUnconditionalUpdate is false: who writes must have seen what is there.
func (notedStrategy[T]) AllowUnconditionalUpdate(context.Context) bool { return false }

func (s notedStrategy[T]) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return s.validate(object.(T))
}

func (s notedStrategy[T]) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return s.update(object.(T), old.(T))
}
