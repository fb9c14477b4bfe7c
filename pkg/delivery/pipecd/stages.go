package pipecd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// pipeline reads the stages. Targets of the whole application have been read.
func (r *reading) pipeline(spec *fields) {
	pipeline := spec.object("pipeline")
	registered := len(r.out.Spec.Targets)
	for _, in := range pipeline.objects("stages") {
		if r.out.Spec.Pipeline == nil {
			r.out.Spec.Pipeline = &v1alpha1.Pipeline{}
		}
		stage := r.stage(in)
		r.out.Spec.Pipeline.Stages = append(r.out.Spec.Pipeline.Stages, stage)
		if !r.runByPlugin(&stage) && v1alpha1.CanonicalStageName(stage.Name) == v1alpha1.StageTrafficRouting && r.out.Spec.Traffic == nil {
			r.out.Spec.Traffic = &v1alpha1.Traffic{Method: v1alpha1.TrafficService} // as PipeCD does unless it is told another way
		}
	}
	if registered > 0 {
		for _, target := range r.out.Spec.Targets[registered:] {
			r.refuse(pipeline.at("stages"), target.Name, "a stage names a target that the application does not have; add it to quickSync.multiTarget")
		}
	}
	if r.selects != nil && !r.selected {
		r.ignore(r.selects, "stages K8S_PRIMARY_ROLLOUT and K8S_SYNC of a pipeline have such an option, which counts for releases without the pipeline as well")
	}
	pipeline.done()
}

func (r *reading) stage(in *fields) v1alpha1.Stage {
	out := v1alpha1.Stage{Name: in.text("name"), ID: in.text("id"), Desc: in.text("desc"), Timeout: in.duration("timeout")}
	with := in.object("with")
	out.SkipOn = r.skipOn(in)
	if out.Plugin, _ = r.uses.plugin(in.text("plugin")); r.runByPlugin(&out) {
		return r.opaqueStage(in, with, out)
	}
	if within := r.skipOn(with); within != nil {
		if in.has("skipOn") && !reflect.DeepEqual(in.values["skipOn"], with.values["skipOn"]) {
			r.refuse(with.at("skipOn"), field.OmitValueType{}, fmt.Sprintf("%s is another one: write one of them, or the same twice", in.at("skipOn")))
		}
		out.SkipOn = within
	}
	out.Targets = r.targets(with)
	if out.Targets != nil && !v1alpha1.ChangesClusters(out.Name) {
		r.refuse(with.path, out.Name, "this stage changes nothing in clusters, and has no targets")
	}
	switch v1alpha1.CanonicalStageName(out.Name) {
	case v1alpha1.StageWaitApproval, v1alpha1.StageAnalysis, v1alpha1.StageScriptRun:
		if within := with.duration("timeout"); within != nil {
			if out.Timeout != nil && *out.Timeout != *within {
				r.refuse(with.at("timeout"), within.Duration.String(), fmt.Sprintf("%s is %s: write one of them, or the same twice", in.at("timeout"), out.Timeout.Duration))
			}
			out.Timeout = within
		}
	}
	if v1alpha1.CanonicalStageName(out.Name) == v1alpha1.StageAnalysis {
		with.ignore("failureLimit of what is measured says how often it may be bad", "threshold")
		if measuresNothing(with) {
			r.ignore(with.path, "it names nothing to measure, so the stage waits for its duration")
			out.Name = v1alpha1.StageWait
		}
	}
	options := r.options(out.Name, with)
	if len(options) > 0 {
		raw, err := json.Marshal(options)
		if err != nil {
			r.refuse(with.path, field.OmitValueType{}, err.Error())
		}
		out.With = &runtime.RawExtension{Raw: raw}
	}
	_, errs := v1alpha1.DecodeOptions(&out, with.path)
	r.errs = append(r.errs, errs...)
	in.done()
	return out
}

func (r *reading) skipOn(in *fields) *v1alpha1.SkipOn {
	skip := in.object("skipOn")
	out := &v1alpha1.SkipOn{CommitMessagePrefixes: skip.texts("commitMessagePrefixes"), Paths: r.patterns(skip, "paths")}
	skip.done()
	if out.CommitMessagePrefixes == nil && out.Paths == nil {
		return nil
	}
	return out
}

// options returns the options of a stage in Manifold's words. Those that a stage does not have are left in, to be refused by their paths.
func (r *reading) options(name string, with *fields) map[string]any {
	out := map[string]any{}
	switch v1alpha1.CanonicalStageName(name) {
	case v1alpha1.StageCanaryRollout, v1alpha1.StageBaselineRollout:
		out["perCluster"] = true // PipeCD counts the replicas of each cluster by itself
		if patches := patchesOf(with); patches != nil {
			out["patches"] = patches
		}
	case v1alpha1.StageSync, v1alpha1.StagePrimaryRollout:
		if r.selects != nil && !with.has("addVariantLabelToSelector") {
			out["addVariantLabelToSelector"] = true
		}
		r.selected = r.selected || out["addVariantLabelToSelector"] == true || with.values["addVariantLabelToSelector"] == true
		if with.values["createService"] != true {
			with.ignore("it is for the name of the primary's own Service, and createService is not set", "suffix")
		}
	case v1alpha1.StageAnalysis:
		r.analysis(with)
	case v1alpha1.StageScriptRun:
		switch {
		case with.has("image"):
		case r.config.ScriptImage != "":
			out["image"] = r.config.ScriptImage
		default:
			r.errs = append(r.errs, field.Required(with.at("image"), "the script runs in a Job, not beside piped, and a Job needs an image: "+
				"add it here, set spec.source.git.pipecd.scriptImage of the Application, or import with --script-image IMAGE"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(with.values)) {
		if value := with.values[key]; value != nil && !with.taken[key] {
			out[key] = value
		}
	}
	return out
}

// measuresNothing reports whether a stage ANALYSIS does nothing but wait, as in examples of PipeCD.
func measuresNothing(with *fields) bool {
	for key := range with.values {
		if key != "duration" && with.has(key) && !with.taken[key] {
			return false
		}
	}
	return with.has("duration")
}

// analysis notes what a stage ANALYSIS cannot do, and takes it away.
func (r *reading) analysis(with *fields) {
	with.ignore("logs are not analysed", "logs")
	with.ignore("what is measured is written out as metrics", "dynamic")
	for _, key := range []string{"metrics", "https"} {
		for i, entry := range with.objects(key) {
			if entry.has("template") {
				r.refuse(with.at(key).Index(i).Child("template"), field.OmitValueType{}, "there are no analysis templates; write out what is measured")
			}
			if key == "metrics" && entry.has("provider") {
				r.provider(entry)
			}
		}
		delete(with.taken, key) // it stays among the options
	}
}

// provider has a metric name the address of its provider, of which files have the name that it has in the configuration of piped, and the Secret with the
// credentials for it, as the Application has them. A Secret that the file names itself stays, for whoever knows what the Application says to refuse.
func (r *reading) provider(metric *fields) {
	name := metric.text("provider")
	if name == "" || strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://") {
		return
	}
	if address, known := r.config.AnalysisProviders[name]; known {
		metric.values["provider"] = address
		if secret := r.config.AnalysisSecrets[name]; secret != "" && !metric.has("secretRef") {
			metric.values["secretRef"] = map[string]any{"name": secret}
		}
		return
	}
	r.refuse(metric.at("provider"), name, fmt.Sprintf("it is the name of a provider in the configuration of piped: write the address of its Prometheus server here, "+
		"set spec.source.git.pipecd.analysisProviders[%s] of the Application to it, or import with --analysis-provider %s=URL", name, name))
}

// patchesOf returns the patches of a variant, whose changes are called ops in some files and yamlOps in others.
func patchesOf(with *fields) []any {
	var out []any
	for _, patch := range with.objects("patches") {
		renamed := maps.Clone(patch.values)
		if ops, ok := renamed["ops"]; ok && renamed["yamlOps"] == nil {
			delete(renamed, "ops")
			renamed["yamlOps"] = ops
		}
		out = append(out, renamed)
	}
	return out
}
