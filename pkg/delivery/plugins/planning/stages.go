package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

// Bounds of what a plugin may say of its stages. A plan is kept in the status of the release.
const (
	mostQuick     = 16
	mostDesc      = 500
	mostApprovers = 50
	mostMetadata  = 4 << 10
	mostKeys      = 32
	mostVersions  = 50
	mostVersion   = 500
)

// nothing is what stands for no options.
var nothing = runtime.RawExtension{Raw: []byte("{}")}

// quickID begins the ids of stages that plugins have in a quick sync.
const quickID = "plugin-"

// pipeline has each plugin plan its stages, and puts these where they are in the pipeline. Those that take something back come last.
func (a *asking) pipeline(ctx context.Context, stages []v1alpha1.Stage) ([]v1alpha1.Stage, error) {
	var back []v1alpha1.Stage
	for i := range a.members {
		of := &a.members[i]
		request := &deployment.BuildPipelineSyncStagesRequest{Rollback: a.rollsBack()}
		for j := range stages {
			if stages[j].Plugin == of.Name {
				request.Stages = append(request.Stages, configOf(&stages[j], j))
			}
		}
		if len(request.Stages) == 0 {
			continue
		}
		about := asked(request.Stages)
		var answer *deployment.BuildPipelineSyncStagesResponse
		supported, err := a.call(ctx, of, "BuildPipelineSyncStages", about, func(ctx context.Context, o ...grpc.CallOption) (err error) {
			answer, err = of.service.BuildPipelineSyncStages(ctx, request, o...)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case !supported:
			return nil, fmt.Errorf("plugin %q cannot plan stage %s: it does not support pipelines", of.Name, about)
		}
		undo, err := of.planned(stages, request, answer.GetStages())
		if err != nil {
			return nil, err
		}
		back = append(back, undo...)
	}
	return append(stages, back...), nil
}

// configOf is a stage as a plugin is asked about it.
func configOf(stage *v1alpha1.Stage, place int) *deployment.BuildPipelineSyncStagesRequest_StageConfig {
	out := &deployment.BuildPipelineSyncStagesRequest_StageConfig{Name: stage.Name, Desc: stage.Desc, Index: int32(place), Config: stage.With.Raw}
	if stage.Timeout != nil {
		out.Timeout = stage.Timeout.Duration.String()
	}
	return out
}

// asked names the stages that a plugin is asked about.
func asked(stages []*deployment.BuildPipelineSyncStagesRequest_StageConfig) string {
	var names []string
	for _, stage := range stages {
		names = append(names, fmt.Sprintf("%s (stages[%d])", stage.Name, stage.Index))
	}
	return listed(names)
}

// planned takes what a plugin answers into its stages, and returns those that take them back. It must answer for each of its stages once, and for none
// of others.
func (m *member) planned(stages []v1alpha1.Stage, request *deployment.BuildPipelineSyncStagesRequest, answer []*model.PipelineStage) (back []v1alpha1.Stage, err error) {
	wanted, undone := map[int32]string{}, map[int32]bool{}
	for _, stage := range request.Stages {
		wanted[stage.Index] = stage.Name
	}
	if most := 2 * len(wanted); len(answer) > most {
		return nil, fmt.Errorf("plugin %q answers with %d stages, and was asked about %s", m.Name, len(answer), asked(request.Stages))
	}
	for _, found := range answer {
		index := found.GetIndex()
		name, own := wanted[index]
		switch rolls := found.GetRollback(); {
		case found == nil:
			return nil, fmt.Errorf("plugin %q answers with a stage that is none", m.Name)
		case rolls && !request.Rollback:
			return nil, fmt.Errorf("plugin %q answers with stage %s, which takes back, and was not asked for one", m.Name, said(found))
		case index < 0 || int(index) >= len(stages) || !own:
			return nil, fmt.Errorf("plugin %q answers for stages[%d] (%s), which is not its own: it was asked about %s", m.Name, index, said(found), asked(request.Stages))
		case rolls && undone[index], !rolls && stages[index].Planned != nil:
			return nil, fmt.Errorf("plugin %q answers twice for stages[%d] (%s)", m.Name, index, said(found))
		case !rolls && found.Name != name:
			return nil, fmt.Errorf("plugin %q answers for stages[%d] with stage %s in place of %s", m.Name, index, said(found), name)
		case rolls:
			undone[index] = true
			undo, err := m.stage(found, delivery.UndoPrefix+stages[index].ID)
			if err != nil {
				return nil, err
			}
			undo.Desc, undo.With = text.Line(found.Desc, mostDesc), stages[index].With.DeepCopy()
			back = append(back, undo)
			continue
		}
		made, err := m.stage(found, stages[index].ID)
		if err != nil {
			return nil, err
		}
		stages[index].Planned = made.Planned
	}
	for _, stage := range request.Stages {
		if stages[stage.Index].Planned == nil {
			return nil, fmt.Errorf("plugin %q does not answer for stage %s (stages[%d]), which it offers", m.Name, stage.Name, stage.Index)
		}
	}
	return back, nil
}

// said is the name of a stage as a plugin says it.
func said(stage *model.PipelineStage) string { return text.Line(stage.GetName(), mostNames) }

// stage is one that a plugin has planned.
func (m *member) stage(found *model.PipelineStage, id string) (v1alpha1.Stage, error) {
	out := v1alpha1.Stage{Name: found.Name, ID: id, Plugin: m.Name, Planned: &v1alpha1.PlannedStage{Index: found.Index, Rollback: found.Rollback}}
	if !slices.Contains(m.Stages, found.Name) {
		return out, fmt.Errorf("plugin %q plans stage %s, which it does not offer: it has %s", m.Name, said(found), listed(m.Stages))
	}
	planned := out.Planned
	switch found.AvailableOperation {
	case model.ManualOperation_MANUAL_OPERATION_SKIP:
		planned.Operation = v1alpha1.PluginSkip
	case model.ManualOperation_MANUAL_OPERATION_APPROVE:
		planned.Operation = v1alpha1.PluginApprove
	}
	if n := len(found.AuthorizedOperators); n > mostApprovers {
		return out, fmt.Errorf("plugin %q names %d people who may act on stage %s, and %d are allowed", m.Name, n, said(found), mostApprovers)
	}
	for _, name := range found.AuthorizedOperators {
		planned.Approvers = append(planned.Approvers, text.Line(name, mostNames))
	}
	size := 0
	for key, value := range found.Metadata {
		size += len(key) + len(value)
	}
	if size > mostMetadata || len(found.Metadata) > mostKeys {
		return out, fmt.Errorf("plugin %q notes %d bytes under %d keys about stage %s, and %d bytes and %d keys are allowed", m.Name, size, len(found.Metadata), said(found), mostMetadata, mostKeys)
	}
	if size > 0 {
		planned.Metadata = found.Metadata
	}
	return out, nil
}

// quick is the way without the pipeline: what is built in brings the revision to all targets at once, and then plugins do what they have to.
func (a *asking) quick(ctx context.Context) ([]v1alpha1.Stage, error) {
	var out, back []v1alpha1.Stage
	if !a.Application.Spec.PluginsOnly {
		out = append(out, v1alpha1.Stage{Name: v1alpha1.StageSync, ID: "sync"})
	}
	for i := range a.members {
		of := &a.members[i]
		var answer *deployment.BuildQuickSyncStagesResponse
		supported, err := a.call(ctx, of, "BuildQuickSyncStages", "", func(ctx context.Context, o ...grpc.CallOption) (err error) {
			answer, err = of.service.BuildQuickSyncStages(ctx, &deployment.BuildQuickSyncStagesRequest{Rollback: a.rollsBack()}, o...)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case !supported:
			continue
		case len(answer.Stages) > mostQuick:
			return nil, fmt.Errorf("plugin %q answers BuildQuickSyncStages with %d stages, and %d are allowed", of.Name, len(answer.Stages), mostQuick)
		}
		for _, found := range answer.Stages {
			if found == nil || found.Rollback && !a.rollsBack() {
				return nil, fmt.Errorf("plugin %q answers BuildQuickSyncStages with stage %s, which takes back, and was not asked for one", of.Name, said(found))
			}
			made, err := of.stage(found, fmt.Sprint(quickID, len(out)))
			if err != nil {
				return nil, err
			}
			made.Desc = text.Line(found.Desc, mostDesc)
			if found.Rollback {
				made.ID = fmt.Sprint(delivery.UndoPrefix, quickID, len(back))
				back = append(back, made)
				continue
			}
			out = append(out, made)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("none of the plugins (%s) has a stage for a quick sync; release by the pipeline, or set spec.planner.alwaysUsePipeline", a.names())
	}
	return append(out, back...), nil
}

func (a *asking) names() string {
	var names []string
	for i := range a.members {
		names = append(names, a.members[i].Name)
	}
	return listed(names)
}

// versions are what plugins say that the revision consists of. They are shown and nothing depends on them, so that it is enough to say who cannot tell.
func (a *asking) versions(ctx context.Context) (out []v1alpha1.ArtifactVersion, untold string, err error) {
	var problems []string
	for i := range a.members {
		of := &a.members[i]
		var answer *deployment.DetermineVersionsResponse
		supported, err := a.withSources(ctx, of, "DetermineVersions", "", func(ctx context.Context, input *deployment.PlanPluginInput, o ...grpc.CallOption) (err error) {
			answer, err = of.service.DetermineVersions(ctx, &deployment.DetermineVersionsRequest{Input: input}, o...)
			return err
		})
		switch wait := (WaitError{}); {
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case errors.As(err, &wait):
			return nil, "", err
		case err != nil:
			problems = append(problems, "its versions are not known: "+err.Error())
			continue
		case !supported:
			continue
		}
		for _, version := range answer.Versions {
			if len(out) == mostVersions {
				problems = append(problems, fmt.Sprintf("of its versions the first %d are shown", mostVersions))
				break
			}
			out = append(out, versionOf(of.Name, version))
		}
	}
	return out, strings.Join(problems, "; "), nil
}

func versionOf(plugin string, version *model.ArtifactVersion) v1alpha1.ArtifactVersion {
	out := v1alpha1.ArtifactVersion{
		Plugin: plugin, Name: text.Line(version.GetName(), mostVersion), Version: text.Line(version.GetVersion(), mostVersion), URL: text.Line(version.GetUrl(), mostVersion),
	}
	if kind := version.GetKind(); kind != model.ArtifactVersion_UNKNOWN {
		out.Kind = model.ArtifactVersion_Kind_name[int32(kind)] // "" if there is no such kind
	}
	return out
}
