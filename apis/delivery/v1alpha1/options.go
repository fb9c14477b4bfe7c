package v1alpha1

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// stageOptions makes empty options for the stages that there are, by their names without MULTI.
var stageOptions = map[string]func() any{
	StageSync:            func() any { return &SyncOptions{} },
	StagePrimaryRollout:  func() any { return &PrimaryRolloutOptions{} },
	StageCanaryRollout:   func() any { return &CanaryRolloutOptions{} },
	StageCanaryClean:     func() any { return &CleanOptions{} },
	StageBaselineRollout: func() any { return &BaselineRolloutOptions{} },
	StageBaselineClean:   func() any { return &CleanOptions{} },
	StageTrafficRouting:  func() any { return &TrafficRoutingOptions{} },
	StageWait:            func() any { return &WaitOptions{} },
	StageWaitApproval:    func() any { return &WaitApprovalOptions{} },
	StageAnalysis:        func() any { return &AnalysisOptions{} },
	StageScriptRun:       func() any { return &ScriptRunOptions{} },
}

// StageNames are the names that stages may have, sorted. Those that change clusters are among them with MULTI as well.
func StageNames() []string {
	var names []string
	for name := range stageOptions {
		names = append(names, name)
		if ChangesClusters(name) {
			names = append(names, multiStagePrefix+name[len(clusterStagePrefix):])
		}
	}
	slices.Sort(names)
	return names
}

// DecodeOptions returns the options of a stage, as a pointer to the type that is the stage's: *WaitOptions for WAIT. Fields that the type
// does not have are refused by their path below the path of with. A stage of a name that there is not has no options.
//
// What a plugin runs has options that the plugin alone knows: none are returned.
func DecodeOptions(stage *Stage, path *field.Path) (any, field.ErrorList) {
	if stage.Plugin != "" {
		return nil, nil
	}
	empty, known := stageOptions[CanonicalStageName(stage.Name)]
	if !known {
		return nil, field.ErrorList{field.NotSupported(path, stage.Name, StageNames())}
	}
	options := empty()
	raw := rawOptions(stage.With)
	if raw == nil {
		return options, nil
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		return options, field.ErrorList{field.Invalid(path, string(raw), "must be an object")}
	}
	unknown, err := json.UnmarshalStrict(raw, options)
	if err != nil {
		return options, field.ErrorList{undecodable(err, path)}
	}
	var errs field.ErrorList
	for _, problem := range unknown {
		at, of := path, json.FieldError(nil)
		if errors.As(problem, &of) {
			at = path.Child(of.FieldPath())
		}
		errs = append(errs, field.Invalid(at, "", problem.Error()+": "+stage.Name+" has no such option"))
	}
	return options, errs
}

func rawOptions(with *runtime.RawExtension) []byte {
	if with == nil {
		return nil
	}
	if raw := bytes.TrimSpace(with.Raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		return raw
	}
	return nil
}

// undecodable names the field that has a value of another type.
func undecodable(err error, path *field.Path) *field.Error {
	var of *stdjson.UnmarshalTypeError
	if errors.As(err, &of) && of.Field != "" {
		return field.TypeInvalid(path.Child(of.Field), of.Value, "must be of type "+of.Type.String())
	}
	return field.Invalid(path, "", err.Error())
}
