package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/delivery/waves"
)

// builtin are the stages that a pipeline may have.
var builtin = []string{
	delivery.StageSync, delivery.StagePrimaryRollout, delivery.StageCanaryRollout, delivery.StageCanaryClean, delivery.StageBaselineRollout,
	delivery.StageBaselineClean, delivery.StageTrafficRouting, delivery.StageWait, delivery.StageApproval, delivery.StageAnalysis, delivery.StageScript,
}

// known reports whether there is a stage of this name: what those of a plugin are called is for the plugin to say.
func known(stage delivery.Stage) bool {
	return stage.Plugin != "" || slices.Contains(builtin, stage.Name)
}

// Check says what keeps a release from being run at all, so that nothing is applied anywhere.
func Check(release delivery.Release) error {
	names, ids := map[string]bool{}, map[string]bool{}
	for _, target := range release.Targets {
		names[target.Name] = true
	}
	for _, name := range release.Others {
		names[name] = true
	}
	for i, stage := range release.Stages {
		path := fmt.Sprintf("stages[%d]", i)
		switch {
		case stage.ID == "" || ids[stage.ID]:
			return fmt.Errorf("%s.id: %q is not one of its own", path, stage.ID)
		case !known(stage):
			return fmt.Errorf("%s.name: there is no stage %q: use one of %s", path, stage.Name, strings.Join(builtin, ", "))
		}
		ids[stage.ID] = true
		for _, name := range stage.Targets {
			if !names[name] {
				return fmt.Errorf("%s.targets: the application has no target %q", path, name)
			}
		}
		if _, err := waves.Assign(make([]delivery.Place, 1), stage.Waves); err != nil {
			return fmt.Errorf("%s.%w", path, err)
		}
		for j, wave := range stage.Waves {
			for _, name := range wave.Targets {
				if !names[name] || len(stage.Targets) > 0 && !slices.Contains(stage.Targets, name) {
					return fmt.Errorf("%s.waves[%d].targets: %q is no target of the stage", path, j, name)
				}
			}
		}
		if err := routing.Validate(stage.Traffic); err != nil {
			return fmt.Errorf("%s.with.%w", path, err)
		}
		if release.ByPods && stage.Traffic != nil {
			shares := routing.Complete(stage.Traffic)
			maps.DeleteFunc(shares, func(name string, share int32) bool { return name != delivery.Primary && share == 0 }) // there may be no such copy
			if err := routing.ByPods(shares); err != nil {
				return fmt.Errorf("%s.with.%w", path, err)
			}
		}
	}
	return nil
}
