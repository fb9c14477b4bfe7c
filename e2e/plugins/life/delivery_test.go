package life

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// sdkPlugin applies a plugin that was made with the SDK of PipeCD's plugins.
func sdkPlugin(s *framework.Scenario, name, program string, more ...string) {
	s.Helper()
	path := framework.PluginProgram(s.T, program)
	apply(s, name, path, sumOfFile(s.T, path), append([]string{"  gracePeriodSeconds: 3"}, more...)...)
	awaitReady(s, name, 1)
}

// application is one of files in a folder, with stages of two plugins and of our own in one pipeline.
func application(version string) string {
	return `
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: site}
spec:
  pluginsOnly: true
  plugins: [{name: toy}, {name: waits}]
  source:
    inline:
      objects:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {version: ` + version + `}}
  pipeline:
    stages:
    - {name: TOY_CANARY_ROLLOUT, with: {percent: 25}}
    - {name: TOY_WAIT_APPROVAL}
    - {name: WAIT_APPROVAL, with: {minApproverNum: 1}}
    - {name: TOY_CANARY_PROMOTE, with: {dieOnce: true}}
`
}

// ran returns how many instances of a platform have a version.
func ran(folder, version string) (count int) {
	files, _ := filepath.Glob(filepath.Join(folder, "*", "*", "*"))
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), "version: "+version) && !strings.Contains(filepath.Base(file), "pipecd") {
			count++
		}
	}
	return count
}

func succeeded(release v1alpha1.Release) bool {
	return release.Status.Phase == v1alpha1.ReleaseSucceeded
}

// runsStage reports whether a release is at the stage of a name.
func runsStage(name string) func(v1alpha1.Release) bool {
	return func(release v1alpha1.Release) bool {
		for _, stage := range release.Status.Stages {
			if stage.Name == name {
				return stage.Phase == v1alpha1.StageRunning
			}
		}
		return false
	}
}

// G1, G32, G35 to G38: nothing of the server knows of the platform.
func TestAPlatformThatOnlyAPluginKnowsGetsACanary(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	platform, err := os.MkdirTemp(filepath.Dir(dir), "platform-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(platform, 0o777); err != nil { // it belongs to whoever runs the plugin
		t.Fatal(err)
	}
	sdkPlugin(s, "toy", tools.ToyPlugin, "  deployTargets: [{name: here, config: {folder: "+platform+", instances: 4}}]")
	sdkPlugin(s, "waits", tools.WaitsPluginOldest)

	s.Logical.Apply(application("one"))
	first := s.AwaitRelease("site-v1", "has succeeded", succeeded)
	if first.Status.Plan.Strategy != v1alpha1.StrategyQuickSync || ran(platform, "one") != 4 {
		t.Errorf("the first release is a %s, and %d instances run", first.Status.Plan.Strategy, ran(platform, "one"))
	}

	// What a release would change can be asked without one, of plugins that tell it and of those that do not.
	for command, want := range map[string][]string{
		"app plan site":             {"Plugin toy in here: "},
		"app diff site":             {"Plugin toy in here: Synced", "Plugin waits: not supported"},
		"app get site":              {"toy", "not supported"},
		"tree application/site":     {"Plugin toy/here"},
		"app plan site -o json":     {`"deployTarget": "here"`},
		"app diff site --exit-code": {"Plugin toy in here: Synced"},
	} {
		s.Logical.Poll(command+" tells of plugins", func() error {
			result := s.Logical.TryCLI(strings.Fields(command)...)
			if err := framework.Failure(result); err != nil {
				return err
			}
			return framework.Contains(result.Stdout, want...)
		})
	}

	s.Logical.Apply(application("two"))
	second := s.AwaitRelease("site-v2", "waits for people, as a plugin has it", runsStage("TOY_WAIT_APPROVAL"))
	if one, two := ran(platform, "one"), ran(platform, "two"); one != 3 || two != 1 {
		t.Errorf("the canary has %d instances beside %d", two, one)
	}
	// The server and the plugins end in the middle of it, in any way.
	_, pid := awaitReady(s, "waits", 1)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitReady(s, "waits", 2)
	if err := errors.Join(s.Environment.Manifold.Kill(), s.Environment.Manifold.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	awaitReady(s, "waits", 1)
	s.AwaitRelease("site-v2", "waits still", runsStage("TOY_WAIT_APPROVAL"))
	s.Logical.CLI("release", "approve", second.Name)
	s.AwaitRelease("site-v2", "waits for people, as we have it", runsStage("WAIT_APPROVAL"))
	s.Logical.CLI("release", "approve", second.Name)
	// The plugin dies once with half of the work done, and the stage is entered again.
	second = s.AwaitRelease("site-v2", "has succeeded", succeeded)
	if got := ran(platform, "two"); got != 4 {
		t.Errorf("%d instances have the new version", got)
	}
	log := s.Logical.CLI("release", "logs", second.Name)
	for _, want := range []string{"TOY_CANARY_ROLLOUT is done", "has approved", "TOY_CANARY_PROMOTE is done"} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log has %q %d times:\n%s", want, strings.Count(log, want), log)
		}
	}
	s.Logical.Poll("the application shows what the plugin says is live", func() error {
		return framework.Contains(s.Logical.CLI("app", "get", "site"), "toy", "here", "Synced", "Healthy")
	})

	// What goes wrong is taken back by the plugin.
	s.Logical.Apply(strings.Replace(application("three"), "percent: 25", "percent: 25, fail: no such luck", 1))
	failed := s.AwaitRelease("site-v3", "has failed", func(release v1alpha1.Release) bool { return release.Status.EndTime != nil })
	if succeeded(failed) || ran(platform, "two") != 4 {
		t.Errorf("it is %s: %s, and %d instances have the version before", failed.Status.Phase, failed.Status.Message, ran(platform, "two"))
	}
	if !strings.Contains(s.Logical.CLI("release", "logs", failed.Name), "no such luck") {
		t.Error("its log does not say why")
	}
}
