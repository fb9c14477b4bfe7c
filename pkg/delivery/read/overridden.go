package read

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Overridden are sentences about what a file beside the manifests says and the application says otherwise, which counts. An application that was made of
// the file says the same, until one of them changes. A file that names targets which the application does not have is not for here: it is refused.
func Overridden(own v1alpha1.ApplicationSpec, file *v1alpha1.RevisionDelivery) []string {
	if file == nil {
		return nil
	}
	asked, counts := completed(With(v1alpha1.ApplicationSpec{Targets: own.Targets}, file)), completed(With(own, file)) // stages name targets in the same way
	out := overriddenTargets(own.Targets, file.Targets)
	for _, of := range []struct {
		file, field   string
		set           bool
		asked, counts any
	}{
		{"pipeline", "pipeline", file.Pipeline != nil, asked.Pipeline, counts.Pipeline},
		{"planner", "planner", file.Planner != nil, asked.Planner, counts.Planner},
		{"trafficRouting", "traffic", file.Traffic != nil, asked.Traffic, counts.Traffic},
		{"service", "service", file.Service != nil, asked.Service, counts.Service},
		{"workloads", "workloads", len(file.Workloads) > 0, asked.Workloads, counts.Workloads},
		{"variantLabel", "variantLabel", file.VariantLabel != v1alpha1.VariantLabel{}, asked.VariantLabel, counts.VariantLabel},
		{"driftDetection", "drift", file.Drift != nil, asked.Drift, counts.Drift},
		{"trigger.onCommit.paths", "trigger.paths", file.Trigger != nil, asked.Trigger.Paths, counts.Trigger.Paths},
		{"trigger.onCommit.ignores", "trigger.ignores", file.Trigger != nil, asked.Trigger.Ignores, counts.Trigger.Ignores},
		{"planner.autoRollback", "rollback.when", file.Rollback.When != "", asked.Rollback.When, counts.Rollback.When},
		{"quickSync.prune", "prune", file.Prune != nil, file.Prune, or(own.Prune, file.Prune)},
	} {
		if of.set && !equality.Semantic.DeepEqual(of.asked, of.counts) {
			out = append(out, overridden(of.file, of.field))
		}
	}
	return out
}

func overridden(file, field string) string {
	return fmt.Sprintf("%s of app.pipecd.yaml is not honoured: spec.%s of the Application says otherwise, and comes first", file, field)
}

// overriddenTargets are sentences about targets for which the file has another folder, or which it leaves out.
func overriddenTargets(own, file []v1alpha1.Target) []string {
	if len(file) == 0 {
		return nil
	}
	var out []string
	registered := Register(own, file)
	for i := range own {
		of, named := registered.Files[own[i].Name]
		switch {
		case !named:
			out = append(out, fmt.Sprintf("multiTarget of app.pipecd.yaml, which leaves out target %s, is not honoured: spec.targets[%d] of the Application has it, and comes first", own[i].Name, i))
		case file[of].Path != "" && path.Clean(file[of].Path) != path.Clean(registered.Targets[i].Path):
			out = append(out, overridden("resourceDir of target "+file[of].Name, fmt.Sprintf("targets[%d].path", i)))
		}
	}
	return out
}

// completed is a spec as it would be stored, its options of stages written in one way.
func completed(spec v1alpha1.ApplicationSpec) v1alpha1.ApplicationSpec {
	out := v1alpha1.Application{Spec: *spec.DeepCopy()}
	v1alpha1.SetObjectDefaults_Application(&out)
	if out.Spec.Pipeline == nil {
		return out.Spec
	}
	for i := range out.Spec.Pipeline.Stages {
		stage := &out.Spec.Pipeline.Stages[i]
		var with map[string]any
		if stage.With == nil || json.Unmarshal(stage.With.Raw, &with) != nil {
			continue
		}
		stage.With = nil
		if raw, err := json.Marshal(with); err == nil && len(with) > 0 {
			stage.With = &runtime.RawExtension{Raw: raw}
		}
	}
	return out.Spec
}
