package life

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// released applies an application of one plugin alone, whose first release begins by itself.
func released(s *framework.Scenario, plugin string) (revision string) {
	s.Helper()
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: of-%[1]s}
spec:
  pluginsOnly: true
  plugins: [{name: %[1]s}]
  rollback: {when: Never}
  source: {inline: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: page}}]}}
`, plugin))
	return "of-" + plugin + "-v1"
}

func ended(release v1alpha1.Release) bool { return release.Status.EndTime != nil }

// Whatever a plugin does with a release, that ends, says whose fault it is, and nobody else notices.
func TestAReleaseEndsWhateverItsPluginDoes(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	add(s, "honest", "{}")
	for _, behaviour := range []string{"misends", "misplans", "dies-in-stage", "meddles", "floods-logs"} {
		add(s, behaviour, "{behaviour: "+behaviour+"}")
		awaitReady(s, behaviour, 1)
		released(s, behaviour)
	}
	for plugin, want := range map[string]string{
		"misends":       "99",
		"misplans":      "K8S_SYNC",
		"dies-in-stage": "dies-in-stage",
	} {
		release := s.AwaitRelease("of-"+plugin+"-v1", "has ended", ended)
		said := release.Status.Message
		for _, stage := range release.Status.Stages {
			said += " " + stage.Message
		}
		if succeeded(release) || !strings.Contains(said, want) {
			t.Errorf("the release of %s is %s: %s, want that it fails and says %q", plugin, release.Status.Phase, said, want)
		}
	}
	// It fails with what it was not refused, so there was nothing of that.
	meddled := s.AwaitRelease("of-meddles-v1", "has ended", ended)
	if !succeeded(meddled) {
		t.Errorf("one that meddles is %s: %s, %+v", meddled.Status.Phase, meddled.Status.Message, meddled.Status.Stages)
	}

	flooding := s.AwaitRelease("of-floods-logs-v1", "runs", runsStage("ROGUE"))
	s.Logical.Poll("its log begins", func() error {
		return framework.Contains(s.Logical.CLI("release", "logs", flooding.Name), "noise")
	})
	s.Logical.CLI("release", "cancel", flooding.Name)
	s.AwaitRelease("of-floods-logs-v1", "has ended", ended)
	const most = 1 << 20
	if log := s.Logical.CLI("release", "logs", flooding.Name); len(log) > most {
		t.Errorf("its log has %d bytes", len(log))
	}

	s.AwaitRelease(released(s, "honest"), "has succeeded", succeeded)
	if of, _ := awaitReady(s, "honest", 1); of.Restarts != 0 {
		t.Errorf("the honest one was started again %d times", of.Restarts)
	}
}

// Plugins of PipeCD end if they cannot read their configuration.
func TestAPluginThatRefusesItsConfigurationSaysSo(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	program := framework.PluginProgram(t, tools.ToyPlugin)
	apply(s, "picky", program, sumOfFile(t, program), "  deployTargets: [{name: here, config: {folder: [none]}}]")
	of := await(s, "picky", "says why it ends", func(of v1alpha1.PluginStatus, ready bool, _, _ string) bool { return !ready && of.Restarts > 0 })
	if !strings.Contains(of.LastError, "it last wrote: ") || !strings.Contains(of.LastError, "deploy target config") {
		t.Errorf("it says %q", of.LastError)
	}
}
