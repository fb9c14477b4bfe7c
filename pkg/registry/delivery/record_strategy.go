package delivery

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/registry/group"
	"github.com/manifold-dev/manifold/pkg/registry/table"
)

// recordStrategy is for what plugins keep.
type recordStrategy struct{ group.Strategy }

func (recordStrategy) NamespaceScoped() bool { return true }

func (recordStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	object.(*v1alpha1.PluginRecord).Generation = 1
}

func (recordStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// AllowUnconditionalUpdate is false: who writes a value must have seen those that are there.
func (recordStrategy) AllowUnconditionalUpdate(context.Context) bool { return false }

func (recordStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidatePluginRecord(object.(*v1alpha1.PluginRecord))
}

func (recordStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidatePluginRecordUpdate(object.(*v1alpha1.PluginRecord), old.(*v1alpha1.PluginRecord))
}

func recordColumns() rest.TableConvertor {
	return table.New([]table.Column[*v1alpha1.PluginRecord]{
		table.Text("Plugin", "The plugin that keeps it.", func(r *v1alpha1.PluginRecord) string { return r.Spec.Plugin }),
		table.Text("Application", "The Application that it is about.", func(r *v1alpha1.PluginRecord) string { return r.Spec.Application }),
		table.Text("Release", "The Release that it is about.", func(r *v1alpha1.PluginRecord) string { return r.Spec.Release }),
		table.Age[*v1alpha1.PluginRecord](),
	}...)
}
