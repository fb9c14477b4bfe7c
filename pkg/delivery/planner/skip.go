package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/changes"
)

// mostPath bounds what a reason shows of a path, in bytes.
const mostPath = 200

// Elsewhere says why a stage has nothing to do in a release to some of the application's targets, "" if it has: it is about others alone, or shares out
// requests to a copy that stages make in others alone.
func Elsewhere(stage delivery.Stage, release delivery.Release) string {
	if len(release.Others) == 0 {
		return ""
	}
	if len(stage.Targets) > 0 && !slices.ContainsFunc(stage.Targets, func(name string) bool { return !slices.Contains(release.Others, name) }) {
		return "skipped: the release is about none of its targets"
	}
	for _, name := range slices.Sorted(maps.Keys(stage.Traffic)) {
		if stage.Traffic[name] > 0 && name != delivery.Primary && !copies(name, release) {
			return fmt.Sprintf("skipped: the release makes no %s in its targets", name)
		}
	}
	return ""
}

// copies reports whether a stage of a release makes a copy in any of its targets.
func copies(name string, release delivery.Release) bool {
	makes := map[string]string{delivery.Canary: delivery.StageCanaryRollout, delivery.Baseline: delivery.StageBaselineRollout}[name]
	return slices.ContainsFunc(release.Stages, func(stage delivery.Stage) bool { return stage.Name == makes && Elsewhere(stage, release) == "" })
}

// Skips says why a stage is left out for a commit, "" if it is not.
func Skips(on delivery.SkipOn, commit delivery.Commit) string {
	for _, prefix := range on.Prefixes {
		if prefix != "" && strings.HasPrefix(commit.Message, prefix) {
			return fmt.Sprintf("skipped: the message of the commit begins with %q", prefix)
		}
	}
	if len(on.Paths) == 0 || len(commit.Paths) == 0 {
		return ""
	}
	for _, changed := range commit.Paths {
		if !changes.MatchesAny(on.Paths, changed) {
			return ""
		}
	}
	return fmt.Sprintf("skipped: of what ran before only files differ that skipOn.paths names, such as %q", text.Line(commit.Paths[0], mostPath))
}
