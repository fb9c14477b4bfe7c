package words

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

// longestName bounds what a name that a plugin has given takes of the screen.
const longestName = 72

// Preview is a line about what a plugin would change in a deploy target.
func Preview(of *v1alpha1.PluginPreview) string {
	says := cmp.Or(of.Summary, "it does not say what changes")
	switch {
	case of.Unsupported:
		says = "not supported: it does not tell what would change"
	case of.NoChange:
		says = cmp.Or(of.Summary, "nothing changes")
	}
	return PluginLine(of.Plugin, of.DeployTarget, says)
}

// PluginLine is a line about what a plugin says of a deploy target; of none if that is "".
func PluginLine(plugin, target, says string) string {
	if target != "" {
		plugin += " in " + target
	}
	return text.Line(fmt.Sprintf("Plugin %s: %s", plugin, says), longest)
}

// Difference names a resource of a plugin that is not as it is to be, such as "page index".
func Difference(of *v1alpha1.PluginDifference) string {
	return text.Line(strings.TrimSpace(of.Type+" "+cmp.Or(of.Name, "without a name")), longestName)
}
