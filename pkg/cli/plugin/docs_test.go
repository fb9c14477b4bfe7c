package plugin

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/piped"
)

// page is the page for admins.
func page(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/delivery/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWhatThePageForAdminsWritesIsTaken(t *testing.T) {
	found := map[string]int{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page(t), -1) {
		if strings.Contains(block[1], "kind: Piped") {
			read, err := piped.Parse([]byte(block[1]))
			if err != nil || len(read.Plugins) != 2 || len(read.Unhonoured) != 1 {
				t.Errorf("the Piped file is read as %+v (%v)", read, err)
			}
			found["Piped"]++
			continue
		}
		var plugin v1alpha1.Plugin
		if err := yaml.UnmarshalStrict([]byte(block[1]), &plugin); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
			continue
		}
		v1alpha1.SetObjectDefaults_Plugin(&plugin)
		if errs := validation.ValidatePlugin(&plugin); len(errs) > 0 {
			t.Errorf("a server refuses %s: %v", plugin.Name, errs.ToAggregate())
		}
		found["Plugin"]++
	}
	if found["Piped"] != 1 || found["Plugin"] != 3 {
		t.Errorf("the page has %v, want a Piped file and three Plugins", found)
	}
}

func TestTheCommandsOfThePageForAdminsAreThere(t *testing.T) {
	known := map[string]*cobra.Command{}
	for _, cmd := range NewCommand(cmdutil.NewFactory(genericclioptions.NewConfigFlags(true)), genericiooptions.NewTestIOStreamsDiscard()).Commands() {
		known[cmd.Name()] = cmd
	}
	calls := regexp.MustCompile("manifold plugin ([a-z]+)([^`|#\n]*)").FindAllStringSubmatch(page(t), -1)
	if len(calls) == 0 {
		t.Fatal("the page has no command")
	}
	flag := regexp.MustCompile(` --([a-z0-9-]+)`)
	for _, call := range calls {
		cmd, there := known[call[1]]
		if !there {
			t.Errorf("there is no manifold plugin %s", call[1])
			continue
		}
		for _, f := range flag.FindAllStringSubmatch(call[2], -1) {
			if cmd.Flags().Lookup(f[1]) == nil {
				t.Errorf("manifold plugin %s has no flag --%s", call[1], f[1])
			}
		}
	}
}
