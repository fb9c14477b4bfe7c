package applications

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
)

// byPlugins has an application delivered by a plugin.
func byPlugins(app *v1alpha1.Application, only bool) *v1alpha1.Application {
	app.Spec.Plugins, app.Spec.PluginsOnly = []v1alpha1.ApplicationPlugin{{Name: "terraform"}}, only
	return app
}

func (w *world) latestSpec() v1alpha1.ApplicationRevisionSpec {
	w.Helper()
	var out v1alpha1.ApplicationRevisionSpec
	for _, revision := range caches.All[*v1alpha1.ApplicationRevision](w.view.revisions) {
		if revision.Spec.Number > out.Number {
			out = revision.Spec
		}
	}
	return out
}

func TestFilesThatPluginsDeliverNeedNoManifests(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", map[string]string{"infra/main.tf": "a", "docs/index.md": "b", "modules/net.tf": "c", "infra/app.pipecd.yaml": `
apiVersion: pipecd.dev/v1beta1
kind: Application
metadata: {labels: {kind: TERRAFORM}}
spec:
  plugins: {terraform: {deployTargets: [dev], vars: [a]}}
  trigger: {onCommit: {paths: [modules/**]}}
  pipeline: {stages: [{name: TERRAFORM_PLAN}, {name: K8S_SYNC, with: {whatever: 1}}]}
`})
	w := newWorld(t, repositories(t), byPlugins(r.application("infra"), true))
	got := w.turn()
	if w.revisionNames() != "web-v1" || w.released() != "web-v1" {
		t.Fatalf("revisions %q: %s %s", w.revisionNames(), says(got, v1alpha1.ApplicationSourceReady), says(got, v1alpha1.ApplicationRendered))
	}
	first := w.latestSpec()
	if len(first.Content) != 64 || len(first.Objects) > 0 || first.Origin.Path != "infra" || first.Hash != v1alpha1.HashWithContent(v1alpha1.HashRevision(first.Targets), first.Content) {
		t.Errorf("the revision is %+v", first)
	}
	if of := first.Delivery; of == nil || len(of.Plugins) != 1 || of.Plugins[0].DeployTargets[0] != "dev" || len(of.Pipeline.Stages) != 2 || string(of.Pipeline.Stages[1].With.Raw) != `{"whatever":1}` {
		t.Errorf("it is delivered as %+v", first.Delivery)
	}
	for _, step := range []struct {
		message, file, want string
	}{
		{"words elsewhere", "docs/index.md", "web-v1"},
		{"another plan", "infra/main.tf", "web-v1 web-v2"},
		{"a module that the trigger names", "modules/net.tf", "web-v1 web-v2 web-v3"},
	} {
		r.Commit(step.message, map[string]string{step.file: step.message})
		if w.turn(); w.revisionNames() != step.want {
			t.Errorf("%s: revisions %s, want %s", step.message, w.revisionNames(), step.want)
		}
	}
}

func TestAFolderWithoutFilesIsTakenForAMistakeOfPlugins(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", map[string]string{"infra/main.tf": "a"})
	w := newWorld(t, repositories(t), byPlugins(r.application("infar"), true))
	if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(got, "there are no files in infar") || w.revisionNames() != "" {
		t.Errorf("it says %q, and revisions are %q", got, w.revisionNames())
	}
}

func TestManifestsOfAnApplicationThatUsesPluginsAreRenderedStill(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", overlays)
	w := newWorld(t, repositories(t), byPlugins(r.application("web/base"), false))
	if got := w.turn(); w.revisionNames() != "web-v1" {
		t.Fatalf("revisions %q: %s", w.revisionNames(), says(got, v1alpha1.ApplicationRendered))
	}
	if spec := w.latestSpec(); len(spec.Objects) != 1 || spec.Content == "" {
		t.Errorf("the revision is %+v", spec)
	}
	r.Commit("a script for a plugin", map[string]string{"web/base/check.sh": "true"})
	if w.turn(); w.revisionNames() != "web-v1 web-v2" {
		t.Errorf("what a plugin alone reads makes revisions %s", w.revisionNames())
	}
}

// saying is what plugins say of an application.
type saying map[types.UID][]v1alpha1.PluginTargetStatus

func (s saying) Of(app types.UID) []v1alpha1.PluginTargetStatus { return s[app] }
func (s saying) Watch(func(cache.ObjectName))                   {}

func TestWhatPluginsSayIsShown(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", map[string]string{"infra/main.tf": "a"})
	w := newWorld(t, repositories(t), byPlugins(r.application("infra"), true))
	w.reporter.live = saying{"uid-of-web": {
		{Plugin: "terraform", DeployTarget: "dev", Sync: v1alpha1.Synced, Health: v1alpha1.Healthy},
		{Plugin: "terraform", DeployTarget: "prod", Sync: v1alpha1.OutOfSync, Health: v1alpha1.Degraded, Message: "a disk is gone"},
	}}
	got := w.turn().Status
	if len(got.Plugins) != 2 || got.Plugins[1].Message != "a disk is gone" || got.Sync != v1alpha1.OutOfSync || got.Health != v1alpha1.Degraded || len(got.Targets) > 0 {
		t.Errorf("it is %s and %s, with plugins %+v and targets %+v", got.Sync, got.Health, got.Plugins, got.Targets)
	}
	w.reporter.live = saying{}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Trigger.Mode = v1alpha1.TriggerManual })
	if got := w.turn().Status; len(got.Plugins) > 0 || got.Sync != v1alpha1.SyncUnknown || got.Health != v1alpha1.HealthUnknown {
		t.Errorf("where plugins say nothing it is %s and %s, with plugins %+v", got.Sync, got.Health, got.Plugins)
	}
}
