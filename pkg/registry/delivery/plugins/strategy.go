// Package plugins says how Plugins are stored and shown.
package plugins

import (
	"context"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// Kind is how plugins are stored and shown.
func Kind(base group.Strategy) group.Kind {
	return group.Kind{
		// In no category: who lists those of a namespace has no right to plugins.
		Plural: v1alpha1.ResourcePlugins, Singular: "plugin", ShortName: "plug", Uncategorized: true,
		Object:   func() runtime.Object { return &v1alpha1.Plugin{} },
		List:     func() runtime.Object { return &v1alpha1.PluginList{} },
		Strategy: strategy{base},
		Status:   statusStrategy{strategy{base}},
		Columns:  columns(),
	}
}

// strategy is for everything about a plugin but its status.
type strategy struct{ group.Strategy }

func (strategy) NamespaceScoped() bool { return false }

// GetResetFields names what PrepareForCreate and PrepareForUpdate reset, so that who applies it does not come to own it.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "status")
}

func (strategy) PrepareForCreate(ctx context.Context, object runtime.Object) {
	plugin := object.(*v1alpha1.Plugin)
	plugin.Status = v1alpha1.PluginStatus{}
	plugin.Generation = 1
	recordAsking(ctx, plugin, &v1alpha1.Plugin{})
}

func (strategy) PrepareForUpdate(ctx context.Context, object, old runtime.Object) {
	plugin, before := object.(*v1alpha1.Plugin), old.(*v1alpha1.Plugin)
	plugin.Status = before.Status
	if !apiequality.Semantic.DeepEqual(plugin.Spec, before.Spec) {
		plugin.Generation = before.Generation + 1
	}
	recordAsking(ctx, plugin, before)
}

// recordAsking writes down who asks for a restart or for another fetch, whoever they say they are: in the status, which nobody but Manifold writes, and in an annotation
// for those who look there. It is for those who have not written the status.
func recordAsking(ctx context.Context, plugin, before *v1alpha1.Plugin) {
	annotations := maps.Clone(plugin.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	if by, known := before.Annotations[v1alpha1.AnnotationAskedBy]; known {
		annotations[v1alpha1.AnnotationAskedBy] = by
	} else {
		delete(annotations, v1alpha1.AnnotationAskedBy)
	}
	for _, of := range []struct {
		annotation string
		into       **v1alpha1.PluginAsked
	}{{v1alpha1.AnnotationRestartAt, &plugin.Status.RestartAsked}, {v1alpha1.AnnotationRefetchAt, &plugin.Status.RefetchAsked}} {
		at := plugin.Annotations[of.annotation]
		if at == "" || at == before.Annotations[of.annotation] {
			continue
		}
		caller, known := request.UserFrom(ctx)
		if !known {
			*of.into = nil
			delete(annotations, v1alpha1.AnnotationAskedBy)
			continue
		}
		*of.into = &v1alpha1.PluginAsked{For: at, By: caller.GetName(), Time: metav1.Now().Rfc3339Copy()}
		annotations[v1alpha1.AnnotationAskedBy] = caller.GetName()
	}
	plugin.Annotations = annotations
}

func (strategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidatePlugin(object.(*v1alpha1.Plugin))
}

func (strategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidatePluginUpdate(object.(*v1alpha1.Plugin), old.(*v1alpha1.Plugin))
}

// WarningsOnCreate tells what is valid and not as safe as it could be.
func (strategy) WarningsOnCreate(_ context.Context, object runtime.Object) []string {
	return validation.PluginWarnings(object.(*v1alpha1.Plugin))
}

// WarningsOnUpdate tells it to those who change the spec.
func (strategy) WarningsOnUpdate(_ context.Context, object, old runtime.Object) []string {
	plugin, before := object.(*v1alpha1.Plugin), old.(*v1alpha1.Plugin)
	if apiequality.Semantic.DeepEqual(plugin.Spec, before.Spec) {
		return nil
	}
	return validation.PluginWarnings(plugin)
}

// statusStrategy is for the status of a plugin, and lets nothing else change.
type statusStrategy struct{ strategy }

// GetResetFields names what PrepareForUpdate resets, so that who applies it does not come to own it.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "spec", "metadata")
}

func (statusStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	plugin, before := object.(*v1alpha1.Plugin), old.(*v1alpha1.Plugin)
	plugin.Spec = before.Spec
	metav1.ResetObjectMetaForStatus(plugin, before)
}

func (statusStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidatePluginStatusUpdate(object.(*v1alpha1.Plugin), old.(*v1alpha1.Plugin))
}
