package delivery

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// pluginStores are the stores of plugins, and requests of users to them.
type pluginStores struct {
	*testing.T
	objects, status rest.Storage
}

func newPlugins(t *testing.T) pluginStores {
	t.Helper()
	made := stores(t)
	return pluginStores{t, made["plugins"], made["plugins/status"]}
}

func (p pluginStores) create(by string, plugin *v1alpha1.Plugin) *v1alpha1.Plugin {
	p.Helper()
	ctx := request.WithUser(request.WithNamespace(p.Context(), ""), &user.DefaultInfo{Name: by})
	object, err := p.objects.(rest.Creater).Create(ctx, plugin, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return object.(*v1alpha1.Plugin)
}

func (p pluginStores) update(to rest.Storage, by string, plugin *v1alpha1.Plugin) *v1alpha1.Plugin {
	p.Helper()
	ctx := request.WithUser(request.WithNamespace(p.Context(), ""), &user.DefaultInfo{Name: by})
	object, _, err := to.(rest.Updater).Update(ctx, plugin.Name, rest.DefaultUpdatedObjectInfo(plugin), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return object.(*v1alpha1.Plugin)
}

func wait() *v1alpha1.Plugin {
	return &v1alpha1.Plugin{
		ObjectMeta: metav1.ObjectMeta{Name: "wait"},
		Spec: v1alpha1.PluginSpec{
			URL: "file:///opt/plugins/wait", Sha256: strings.Repeat("0a", 32), LogLevel: v1alpha1.PluginLogInfo, GracePeriodSeconds: ptr.To[int32](30),
		},
	}
}

func TestWhoWritesAPluginDoesNotWriteItsStatus(t *testing.T) {
	p := newPlugins(t)
	forged := wait()
	forged.Status.Stages = []string{"K8S_SYNC"}
	made := p.create("admin", forged)
	if made.Generation != 1 || made.Status.Stages != nil {
		t.Fatalf("made with generation %d and stages %q, want 1 and none", made.Generation, made.Status.Stages)
	}
	made.Status.Stages, made.Spec.Suspend = []string{"K8S_SYNC"}, true
	if made = p.update(p.objects, "admin", made); made.Generation != 2 || made.Status.Stages != nil || !made.Spec.Suspend {
		t.Fatalf("updated to generation %d, stages %q and suspend %t, want 2, none and true", made.Generation, made.Status.Stages, made.Spec.Suspend)
	}
	made.Status.Stages, made.Spec.Suspend, made.Labels = []string{"WAIT"}, false, map[string]string{"a": "b"}
	if made = p.update(p.status, "controller", made); made.Generation != 2 || len(made.Status.Stages) != 1 || !made.Spec.Suspend || len(made.Labels) != 0 {
		t.Errorf("a write of the status has made it %+v", made)
	}
}

func TestWhoAsksForARestartIsWrittenDown(t *testing.T) {
	p := newPlugins(t)
	by := func(plugin *v1alpha1.Plugin) string { return plugin.Annotations[v1alpha1.AnnotationAskedBy] }
	annotate := func(plugin *v1alpha1.Plugin, key, value string) *v1alpha1.Plugin {
		out := plugin.DeepCopy()
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[key] = value
		return out
	}

	made := p.create("admin", annotate(wait(), v1alpha1.AnnotationAskedBy, "the-boss"))
	if got, there := made.Annotations[v1alpha1.AnnotationAskedBy]; there {
		t.Fatalf("nobody has asked, and it says %q", got)
	}
	made = p.update(p.objects, "alice", annotate(annotate(made, v1alpha1.AnnotationRestartAt, "2026-01-02T03:04:05Z"), v1alpha1.AnnotationAskedBy, "the-boss"))
	if by(made) != "alice" {
		t.Fatalf("alice has asked for a restart, and it says %q", by(made))
	}
	made = p.update(p.objects, "bob", annotate(annotate(made, "team", "shop"), v1alpha1.AnnotationAskedBy, "bob"))
	if by(made) != "alice" {
		t.Fatalf("bob has asked for nothing, and it says %q", by(made))
	}
	made = p.update(p.objects, "bob", annotate(made, v1alpha1.AnnotationRefetchAt, "now"))
	if by(made) != "bob" {
		t.Fatalf("bob has the program fetched again, and it says %q", by(made))
	}
	without := made.DeepCopy()
	without.Annotations = nil
	if made = p.update(p.objects, "carol", without); by(made) != "bob" {
		t.Errorf("carol has taken the annotations off, and it says %q", by(made))
	}
	restart, refetch := made.Status.RestartAsked, made.Status.RefetchAsked
	if restart == nil || refetch == nil || restart.By != "alice" || restart.For != "2026-01-02T03:04:05Z" || restart.Time.IsZero() || refetch.By != "bob" || refetch.For != "now" {
		t.Errorf("the status says %+v and %+v, whatever has become of the annotations, want alice and bob", restart, refetch)
	}
	forged := annotate(made, v1alpha1.AnnotationRestartAt, "again")
	forged.Status.RestartAsked = &v1alpha1.PluginAsked{For: "again", By: "the-boss"}
	if made = p.update(p.objects, "carol", forged); made.Status.RestartAsked.By != "carol" || made.Status.RefetchAsked.By != "bob" {
		t.Errorf("carol has asked, and the status says %+v", made.Status.RestartAsked)
	}
}
