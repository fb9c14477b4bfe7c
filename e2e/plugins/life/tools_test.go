package life

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// A plugin that files of PipeCD call rogue_plugin asks for a tool, as those for Kubernetes ask for kubectl.
func TestAPluginInstallsAToolOnceAnAdminLetsIt(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	add(s, "rogue-plugin", "{behaviour: installs}", "  pipecdName: rogue_plugin", "  deployTargets: [{name: here}]")
	awaitReady(s, "rogue-plugin", 1)
	s.Logical.Apply(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: tooled}
spec:
  pluginsOnly: true
  plugins: [{name: rogue-plugin}]
  rollback: {when: Never}
  source: {inline: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: page}}]}}
`)
	said := func(release v1alpha1.Release) string {
		out := release.Status.Message
		for _, stage := range release.Status.Stages {
			out += " " + stage.Message
		}
		return out
	}
	first := s.AwaitRelease("tooled-v1", "has failed", func(release v1alpha1.Release) bool { return release.Status.EndTime != nil })
	if got := said(first); succeeded(first) || !strings.Contains(got, `plugin "rogue-plugin" may not install it`) || !strings.Contains(got, "spec.installTools") {
		t.Errorf("without an admin's word it is %s: %s", first.Status.Phase, got)
	}
	installed := filepath.Join(dir, "homes", "rogue-plugin", "tools", "hello-1.0")
	if _, err := os.Stat(installed); !os.IsNotExist(err) {
		t.Errorf("the tool is there: %v", err)
	}

	s.Logical.Kubectl("patch", "plugin", "rogue-plugin", "--type=merge", "--patch", `{"spec":{"installTools":true}}`)
	s.Logical.CLI("release", "retry", first.Name)
	second := s.AwaitRelease("tooled-v1", "has succeeded", succeeded)
	of, pid := awaitReady(s, "rogue-plugin", 1)
	if want := fmt.Sprintf("%s is called rogue_plugin: hello 1.0 as %d", installed, userOf(pid)); !strings.Contains(said(second), want) {
		t.Errorf("it says %q, want %q", said(second), want)
	}
	if of.Incarnation != 1 {
		t.Errorf("it was started %d times, and no change of it needed that", of.Incarnation)
	}
	log, err := os.ReadFile(filepath.Join(dir, "logs", "rogue-plugin.tools.log"))
	if err != nil || strings.Count(string(log), "has started as process") != 1 {
		t.Errorf("the log of its tools is %q: %v", log, err)
	}
	left, err := os.ReadDir(filepath.Dir(installed))
	if err != nil || len(left) != 1 {
		t.Errorf("in the folder of its tools are %v: %v", left, err)
	}
}

func TestWhoHasAskedForARestartIsShownWhoeverSaysWhat(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	add(s, "asked", "{}")
	awaitReady(s, "asked", 1)
	s.Logical.CLI("plugin", "restart", "asked", "--wait")
	s.Logical.Kubectl("annotate", "plugin", "asked", "--overwrite", v1alpha1.AnnotationAskedBy+"=the-boss")
	of := await(s, "asked", "says who has asked", func(of v1alpha1.PluginStatus, _ bool, _, _ string) bool {
		return of.RestartAsked != nil && of.RestartAsked.For == of.RestartedFor
	})
	if of.RestartAsked.By == "" || of.RestartAsked.By == "the-boss" {
		t.Errorf("asked has %q", of.RestartAsked.By)
	}
	want := fmt.Sprintf("for which user %q has asked", of.RestartAsked.By)
	s.Logical.Poll("an event tells it", func() error {
		return framework.Contains(s.Logical.Kubectl("get", "events", "-n", "default", "--field-selector=reason=Asked", "-o", "jsonpath={.items[*].message}"), want)
	})
	if err := framework.Contains(s.Logical.CLI("plugin", "get", "asked"), of.RestartAsked.By+" has asked"); err != nil {
		t.Error(err)
	}
}
