package app

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

// plugged is an application of plugins alone, of which two tell something.
func plugged() *v1alpha1.Application {
	out := application(v1alpha1.ApplicationSpec{PluginsOnly: true, Plugins: []v1alpha1.ApplicationPlugin{{Name: "terraform"}, {Name: "waits"}}}, v1alpha1.ApplicationStatus{
		LatestRevision: "web-v2", LiveRevision: "web-v1",
		Plugins: []v1alpha1.PluginTargetStatus{
			{Plugin: "terraform", DeployTarget: "dev", Sync: v1alpha1.Synced},
			{Plugin: "terraform", DeployTarget: "prod", Sync: v1alpha1.OutOfSync, Message: "1 differs", DifferenceCount: 3, Differences: []v1alpha1.PluginDifference{{Name: hostile, Kind: v1alpha1.PluginDiffers}}},
		},
	})
	return out
}

func TestG21G22PlansAndDifferencesTellWhatPluginsSay(t *testing.T) {
	previews := []v1alpha1.PluginPreview{
		{Plugin: "terraform", DeployTarget: "dev", Summary: hostile, DifferenceCount: 22, Differences: []v1alpha1.PluginDifference{
			{Type: "bucket", Name: "logs", Kind: v1alpha1.PluginMissing}, {Type: "queue", Name: "old", Kind: v1alpha1.PluginExtra}, {Name: "web", Kind: v1alpha1.PluginChanged},
		}},
		{Plugin: "terraform", DeployTarget: "prod", NoChange: true}, {Plugin: "terraform", DeployTarget: "eu", Unsupported: true},
	}
	for name, test := range map[string]struct {
		drift    bool
		targets  []string
		change   func(*v1alpha1.Application)
		previews []v1alpha1.PluginPreview
		refuses  error
		want     string
		differs  bool
		fails    string
	}{
		"what they would change": {previews: previews, differs: true, want: `Plugin terraform in dev: ` + "^[[2Jall is well" + `
+ bucket logs
- queue old
~ web
... and 19 more
Plugin terraform in prod: nothing changes
Plugin terraform in eu: not supported: it does not tell what would change
`},
		"nothing changes, and one does not tell":     {previews: previews[1:], want: "Plugin terraform in prod: nothing changes\nPlugin terraform in eu: not supported: it does not tell what would change\n"},
		"one should tell and does not":               {previews: []v1alpha1.PluginPreview{{Plugin: "terraform", Unknown: true, Summary: "not known: it starts"}}, want: "Plugin terraform: not known: it starts\n", fails: "in 1 places"},
		"the server runs none":                       {refuses: apierrors.NewServiceUnavailable("this server runs no plugins"), want: "Plugins: unknown: this server runs no plugins\n", fails: "in 1 places"},
		"somebody may not ask":                       {refuses: apierrors.NewForbidden(v1alpha1.Resource("applications"), "web", errors.New("no")), want: `Plugins: unknown: applications.delivery.manifold.dev "web" is forbidden: no; the right to create applications/preview in namespace "shop", which ClusterRole "edit" has, lets you ask them` + "\n", fails: "in 1 places"},
		"an application without plugins asks nobody": {change: func(app *v1alpha1.Application) { app.Spec.Plugins = nil }, refuses: errors.New("nobody was to be asked")},
		"single targets are none of plugins":         {targets: []string{"hoge"}, refuses: errors.New("nobody was to be asked")},
		"what they have found": {drift: true, refuses: errors.New("nobody was to be asked"), differs: true, want: `Plugin terraform in dev: Synced
Plugin terraform in prod: OutOfSync: 1 differs
? ` + "^[[2Jall is well" + `
... and 2 more
Plugin waits: not supported: it has told nothing of what is there
`},
		"what they cannot tell": {drift: true, change: func(app *v1alpha1.Application) {
			app.Spec.Plugins, app.Status.Plugins = app.Spec.Plugins[:1], []v1alpha1.PluginTargetStatus{{Plugin: "terraform", DeployTarget: "dev", Sync: v1alpha1.SyncUnknown, Message: "no route"}}
		}, want: "Plugin terraform in dev: Unknown: no route\n", fails: "in 1 places"},
	} {
		t.Run(name, func(t *testing.T) {
			app, client := plugged(), fake.NewSimpleClientset()
			if test.change != nil {
				test.change(app)
			}
			client.PrependReactor("create", "applications", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked, _ := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.ApplicationPreview)
				if action.GetSubresource() != "preview" || asked == nil || asked.Revision != "web-v2" || action.GetNamespace() != "shop" {
					t.Errorf("asked is %v", action)
				}
				return true, &v1alpha1.ApplicationPreview{Previews: test.previews}, test.refuses
			})
			o := &PlanOptions{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), subject: subject{Namespace: "shop", Name: "web", client: client}, drift: test.drift, Targets: test.targets}
			found := &plan{Application: "web", Revision: "web-v2"}
			o.plugins(t.Context(), app, "web-v2", found)
			var out strings.Builder
			if err := found.print(&out); err != nil {
				t.Fatal(err)
			}
			if got := shortened(out.String()); got != test.want {
				t.Errorf("it prints\n%s\nwant\n%s", got, test.want)
			}
			err := found.failed()
			if found.differs() != test.differs || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("differs: %t, want %t; error %v, want %q", found.differs(), test.differs, err, test.fails)
			}
			if written, err := json.Marshal(found); err != nil || strings.Contains(string(written), `"line"`) {
				t.Errorf("as JSON it is %s, %v", written, err)
			}
		})
	}
}

// shortened leaves out what a hostile text goes on with.
func shortened(said string) string {
	lines := strings.Split(said, "\n")
	for i, line := range lines {
		if begin, _, found := strings.Cut(line, " really"); found {
			lines[i] = begin
		}
		if len(line) > longest {
			lines[i] = "too long: " + line
		}
	}
	return strings.Join(lines, "\n")
}

func TestAnApplicationThatWasNeverReleasedHasNoSilentPlugins(t *testing.T) {
	app := plugged()
	if got := silent(app); len(got) != 1 || got[0] != "waits" {
		t.Errorf("silent are %q", got)
	}
	app.Status = v1alpha1.ApplicationStatus{}
	if got := silent(app); len(got) != 0 {
		t.Errorf("before a release, silent are %q", got)
	}
}

func TestAnApplicationThatPluginsAloneDeliverHasNoTargets(t *testing.T) {
	v1 := holding(t, revision("web", 1), []string{"default"}, []string{configMap("web", "1")})
	v2 := holding(t, revision("web", 2), []string{"default"}, []string{configMap("web", "2")})
	for name, test := range map[string]struct {
		drift   bool
		targets []string
		want    string
		fails   string
	}{
		"a plan is of its plugins alone":       {want: "Plugin terraform in dev: nothing changes\n"},
		"and so are differences":               {drift: true, want: "Plugin terraform in dev: Synced\n"},
		"nobody looks at a target of it":       {targets: []string{"default"}, fails: "delivered by plugins alone"},
		"nor where somebody asks what differs": {drift: true, targets: []string{"default"}, fails: "delivered by plugins alone"},
	} {
		t.Run(name, func(t *testing.T) {
			app := plugged()
			app.Spec.Plugins, app.Status.Plugins = app.Spec.Plugins[:1], app.Status.Plugins[:1]
			client := fake.NewSimpleClientset(app, v1, v2)
			client.PrependReactor("create", "applications", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &v1alpha1.ApplicationPreview{Previews: []v1alpha1.PluginPreview{{Plugin: "terraform", DeployTarget: "dev", NoChange: true}}}, nil
			})
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &PlanOptions{IOStreams: streams, subject: subject{Namespace: "shop", Name: "web", client: client}, drift: test.drift, Targets: test.targets}
			differs, err := o.Run(t.Context())
			if differs || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) || out.String() != test.want {
				t.Errorf("it prints %q, want %q; differs: %t, error %v", out.String(), test.want, differs, err)
			}
		})
	}
}
