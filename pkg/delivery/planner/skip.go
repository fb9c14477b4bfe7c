package planner

import (
	"fmt"
	"strings"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/changes"
)

// mostPath bounds what a reason shows of a path, in bytes.
const mostPath = 200

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
