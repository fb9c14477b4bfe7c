package validation

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// Bounds of what an application may say to plugins.
const (
	mostPlugins       = 16
	mostDeployTargets = 100
	mostToldConfig    = 64 << 10
)

// stageName is what names of stages look like. They stand in messages, and are compared with what plugins offer.
var stageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// deployTargetName is what names of deploy targets look like: those of PipeCD may have underscores.
var deployTargetName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)

// validatePlugins refuses plugins that can mean nothing. Whether there are such plugins, and such deploy targets, is for who plans a release to find out.
func validatePlugins(spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	at := path.Child("plugins")
	var errs field.ErrorList
	if len(spec.Plugins) > mostPlugins {
		errs = append(errs, field.TooMany(at, len(spec.Plugins), mostPlugins))
	}
	names := map[string]bool{}
	for i := range spec.Plugins {
		errs = append(errs, validatePlugin(&spec.Plugins[i], spec, names, at.Index(i))...)
	}
	if !spec.PluginsOnly {
		return errs
	}
	if len(spec.Plugins) == 0 {
		errs = append(errs, field.Required(at, "pluginsOnly says that nothing else delivers the application"))
	}
	for _, given := range []struct {
		field *field.Path
		set   bool
	}{
		{path.Child("targets"), len(spec.Targets) > 0}, {path.Child("traffic"), spec.Traffic != nil}, {path.Child("service"), spec.Service != nil},
		{path.Child("workloads"), len(spec.Workloads) > 0}, {path.Child("drift"), spec.Drift != nil}, {path.Child("prune"), ptr.Deref(spec.Prune, false)},
		{path.Child("source", "selector"), spec.Source.Selector != nil},
	} {
		if given.set {
			errs = append(errs, field.Forbidden(given.field, "may not be specified with pluginsOnly: Manifold itself delivers nothing of the application"))
		}
	}
	return errs
}

func validatePlugin(plugin *v1alpha1.ApplicationPlugin, spec *v1alpha1.ApplicationSpec, names map[string]bool, path *field.Path) field.ErrorList {
	errs := validateNewName(plugin.Name, names, path.Child("name"))
	targets := path.Child("deployTargets")
	if len(plugin.DeployTargets) > mostDeployTargets {
		errs = append(errs, field.TooMany(targets, len(plugin.DeployTargets), mostDeployTargets))
	}
	errs = append(errs, fields.Unique(plugin.DeployTargets, targets)...)
	for i, name := range plugin.DeployTargets {
		if !deployTargetName.MatchString(name) {
			errs = append(errs, field.Invalid(targets.Index(i), name, "must be the name of a deploy target of the Plugin"))
		}
	}
	if plugin.Config == nil {
		return errs
	}
	if spec.Source.Git != nil {
		errs = append(errs, field.Forbidden(path.Child("config"), fmt.Sprintf("may not be specified with source.git: write it below spec.plugins.%s of app.pipecd.yaml", plugin.Name)))
	}
	return append(errs, validateToldConfig(plugin.Config, path.Child("config"))...)
}

// validateToldConfig refuses what is no object, or a large one. What it means is for a plugin to say.
func validateToldConfig(config *runtime.RawExtension, path *field.Path) field.ErrorList {
	if config != nil && len(config.Raw) > mostToldConfig {
		return field.ErrorList{field.TooLong(path, "", mostToldConfig)}
	}
	return validateOpaque(config, path)
}

// validatePluginStage refuses a stage that no plugin of the application can run, as far as that can be told without asking them.
func validatePluginStage(stage *v1alpha1.Stage, spec *v1alpha1.ApplicationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !stageName.MatchString(stage.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), stage.Name, "must be the name of a stage that a plugin offers: letters, digits and ._-, at most 128"))
	}
	if stage.Plugin != "" && !slices.ContainsFunc(spec.Plugins, func(plugin v1alpha1.ApplicationPlugin) bool { return plugin.Name == stage.Plugin }) {
		errs = append(errs, field.Invalid(path.Child("plugin"), stage.Plugin, "is none of spec.plugins"))
	}
	errs = append(errs, validateOnceForAll(stage, path)...)
	errs = append(errs, validateToldConfig(stage.With, path.Child("with"))...)
	return append(errs, validateAnyStage(stage, spec, path)...)
}
