package progress

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestWhatPluginsSayOfARelease(t *testing.T) {
	got := byPlugins(&v1alpha1.ReleasePlan{
		Versions: []v1alpha1.ArtifactVersion{{Plugin: "toy", Kind: "CONTAINER_IMAGE", Name: "web", Version: "1.2\x1b[31m"}, {Plugin: "toy", URL: "https://git.example"}},
		Previews: []v1alpha1.PluginPreview{
			{Plugin: "toy", DeployTarget: "dev", Summary: "1 added"}, {Plugin: "toy", DeployTarget: "prod", NoChange: true}, {Plugin: "toy", DeployTarget: "eu"},
		},
	})
	want := []string{
		"Version of web: 1.2^[[31m (plugin toy)", "Version: https://git.example (plugin toy)",
		"Plugin toy in dev: 1 added", "Plugin toy in prod: nothing changes", "Plugin toy in eu: it does not say what changes",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
