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

// logStrategy is for the parts of logs.
type logStrategy struct{ group.Strategy }

func (logStrategy) NamespaceScoped() bool { return true }

func (logStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	object.(*v1alpha1.ReleaseLogPart).Generation = 1
}

func (logStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// AllowUnconditionalUpdate is false: who writes lines must have seen those that are there.
func (logStrategy) AllowUnconditionalUpdate(context.Context) bool { return false }

func (logStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidateReleaseLogPart(object.(*v1alpha1.ReleaseLogPart))
}

func (logStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateReleaseLogPartUpdate(object.(*v1alpha1.ReleaseLogPart), old.(*v1alpha1.ReleaseLogPart))
}

func logColumns() rest.TableConvertor {
	return table.New([]table.Column[*v1alpha1.ReleaseLogPart]{
		table.Text("Release", "The release that it is the log of.", func(l *v1alpha1.ReleaseLogPart) string { return l.Spec.Release }),
		table.Number("Part", "Its position among the parts of the log.", func(l *v1alpha1.ReleaseLogPart) int64 { return l.Spec.Number }),
		table.Number("Lines", "How many lines it has.", func(l *v1alpha1.ReleaseLogPart) int64 { return int64(len(l.Spec.Lines)) }),
		table.Age[*v1alpha1.ReleaseLogPart](),
	}...)
}
