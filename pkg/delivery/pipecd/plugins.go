package pipecd

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// opaque reads what an application says that plugins alone deliver. They get the file as it is, so that what is unknown here may mean something to them.
func (r *reading) opaque(spec *fields) {
	if _, names := spec.values["plugins"].([]any); names {
		for i, name := range spec.texts("plugins") {
			r.use(spec.at("plugins").Index(i), name)
		}
	} else {
		plugins := spec.object("plugins")
		for _, name := range slices.Sorted(maps.Keys(plugins.values)) {
			if r.use(plugins.at(name), name) {
				r.used(plugins, name)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.values)) {
		if !spec.taken[key] && key != "pipeline" {
			spec.ignore("it is not known here; plugins may read it", key)
		}
	}
}

// plugin is the name of the plugin that a file calls so, if the application uses it. Objects cannot have all names that PipeCD lets plugins have.
func (u Uses) plugin(written string) (name string, used bool) {
	for _, name := range []string{written, v1alpha1.PluginNameOf(written)} {
		if slices.Contains(u.Plugins, name) {
			return name, true
		}
	}
	return written, false
}

// use reports whether the application uses a plugin, and notes that it does not.
func (r *reading) use(at *field.Path, name string) bool {
	if _, used := r.uses.plugin(name); used {
		return true
	}
	r.ignore(at, "the Application does not use this plugin: add it to its spec.plugins")
	return false
}

// used takes what the file says to a plugin, of which the deploy targets alone are read here.
func (r *reading) used(plugins *fields, name string) {
	out := v1alpha1.ApplicationPlugin{}
	out.Name, _ = r.uses.plugin(name)
	if slices.ContainsFunc(r.out.Spec.Plugins, func(of v1alpha1.ApplicationPlugin) bool { return of.Name == out.Name }) {
		r.refuse(plugins.at(name), name, fmt.Sprintf("it is plugin %s, which the file has by another name as well", out.Name))
	}
	config, _ := plugins.take(name).(map[string]any)
	for _, key := range []string{"deployTarget", "deployTargets"} {
		switch value := config[key].(type) {
		case string:
			out.DeployTargets = append(out.DeployTargets, value)
		case []any:
			for _, item := range value {
				if target, is := item.(string); is && !slices.Contains(out.DeployTargets, target) {
					out.DeployTargets = append(out.DeployTargets, target)
				}
			}
		}
	}
	r.out.Spec.Plugins = append(r.out.Spec.Plugins, out)
}

// runByPlugin reports whether a plugin runs a stage.
func (r *reading) runByPlugin(stage *v1alpha1.Stage) bool {
	spec := v1alpha1.ApplicationSpec{PluginsOnly: r.uses.Only, Plugins: make([]v1alpha1.ApplicationPlugin, len(r.uses.Plugins))}
	return spec.RunByPlugin(stage)
}

// opaqueStage is a stage with its options as they are.
func (r *reading) opaqueStage(in, with *fields, out v1alpha1.Stage) v1alpha1.Stage {
	if len(with.values) > 0 {
		raw, err := json.Marshal(with.values)
		if err != nil {
			r.refuse(with.path, field.OmitValueType{}, err.Error())
		}
		out.With = &runtime.RawExtension{Raw: raw}
	}
	in.done()
	return out
}
