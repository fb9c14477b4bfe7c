package tree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestG23ATreeShowsWhatPluginsHaveFound(t *testing.T) {
	app := application(func(app *v1alpha1.Application) {
		app.Status.Plugins = []v1alpha1.PluginTargetStatus{
			{
				Plugin: "toy", DeployTarget: "dev", Sync: v1alpha1.OutOfSync, Health: v1alpha1.Degraded, Message: hostile, ResourceCount: 9, DifferenceCount: 1,
				Differences: []v1alpha1.PluginDifference{{Type: "page", Name: "style", Kind: v1alpha1.PluginMissing}},
				Resources: []v1alpha1.PluginResource{
					{ID: "2", Parents: []string{"1"}, Type: "page", Name: "index", Health: v1alpha1.Degraded, Message: "empty"}, {ID: "1", Type: "instance", Name: "0", Health: v1alpha1.Healthy},
					{ID: "3", Parents: []string{"gone"}, Name: hostile, Health: v1alpha1.HealthUnknown},
					{ID: "a", Parents: []string{"b"}}, {ID: "b", Parents: []string{"a"}}, {ID: "self", Parents: []string{"self"}}, {ID: "1", Name: "twice"},
				},
			},
			{Plugin: "toy", DeployTarget: "prod", Sync: v1alpha1.SyncUnknown, Health: v1alpha1.HealthUnknown, Message: "not ready"},
		}
	})
	var lines []string
	var tell func(n *Node, indent string)
	tell = func(n *Node, indent string) {
		line := fmt.Sprintf("%s%s %s %s %s %q", indent, n.Kind, n.Name, n.Health, n.Status, n.Problems)
		if begin, rest, found := strings.Cut(line, " really"); found && len(rest) < 2*longest {
			line = begin
		}
		lines = append(lines, line)
		for _, child := range n.Children {
			tell(child, indent+" ")
		}
	}
	for _, n := range byPlugins(app) {
		tell(n, "")
	}
	want := `Plugin toy/dev Degraded OutOfSync, Degraded, 2 more resources ["^[[2Jall is well
 instance 0 Healthy Healthy []
  page index Degraded Degraded ["empty"]
 Resource ^[[2Jall is well
 Resource b Unknown Unknown []
  Resource a Unknown Unknown []
 Resource self Unknown Unknown []
Plugin toy/prod Unknown Unknown, Unknown ["not ready"]`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}
