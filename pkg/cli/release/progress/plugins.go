package progress

import (
	"cmp"
	"fmt"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/words"
)

// byPlugins are lines about what plugins say of a release: what it consists of, and what it was going to change before it began.
func byPlugins(plan *v1alpha1.ReleasePlan) (lines []string) {
	for _, version := range plan.Versions {
		of := "Version"
		if name := cmp.Or(version.Name, version.Kind); name != "" {
			of += " of " + name
		}
		lines = append(lines, text.Line(fmt.Sprintf("%s: %s (plugin %s)", of, cmp.Or(version.Version, version.URL), version.Plugin), longest))
	}
	for i := range plan.Previews {
		lines = append(lines, words.Preview(&plan.Previews[i]))
	}
	return lines
}
