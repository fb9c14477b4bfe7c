package applications

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

// Whoever undoes a change reads the condition of what is there again, not that of the change.

func TestTargetsThatAFileDoesNotFitAreUndone(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", overlays)
	r.Commit("the second", map[string]string{"web/app.pipecd.yaml": `
apiVersion: pipecd.dev/v1beta1
kind: KubernetesApp
spec:
  name: web
  input: {multiTargets: [{target: {name: east}, kustomizeDir: ./east}, {target: {name: west}, kustomizeDir: ./west}]}
  pipeline: {stages: [{name: K8S_PRIMARY_ROLLOUT, with: {multiTargets: [west]}}]}
`})
	w := newWorld(t, repositories(t), r.application("web"))
	if got := says(w.turn(), v1alpha1.ApplicationRendered); got != "" {
		t.Fatalf("condition Rendered says %q", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Targets = []v1alpha1.Target{{Name: "east", Cluster: "east", Path: "east"}}
	})
	if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(got, `ApplicationFile: the application file cannot be used`) || !strings.Contains(got, "is none of spec.targets of the Application") {
		t.Fatalf("with other targets it says %q, want what does not fit", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Targets = nil })
	if got := says(w.turn(), v1alpha1.ApplicationRendered); got != "" || w.revisionNames() != "web-v1" {
		t.Errorf("with the targets of the file again it says %q, and there are revisions %s", got, w.revisionNames())
	}
}

func TestARevisionThatCannotBeStoredIsUndone(t *testing.T) {
	w := newWorld(t, nil, inline(configMap("blue")))
	w.turn()
	w.client.PrependReactor("create", "applicationrevisions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(v1alpha1.Kind("ApplicationRevision"), "web-v2", nil)
	})
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[0].Raw = []byte(configMap("red")) })
	if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(got, "Invalid: ") || !strings.Contains(got, "make ApplicationRevision web-v") {
		t.Fatalf("condition Rendered says %q, want what is not stored", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[0].Raw = []byte(configMap("blue")) })
	if got := says(w.turn(), v1alpha1.ApplicationRendered); got != "" {
		t.Errorf("with what is stored already it says %q", got)
	}
}

func TestWhatIsRenderedTooSlowlyIsUndoneAndDoneAgain(t *testing.T) {
	w := newWorld(t, nil, inline(configMap("blue")))
	w.turn()
	w.reader.renderer.confined = rendererFunc(func(context.Context, string) (*render.Result, error) {
		return nil, context.DeadlineExceeded
	})
	patched := []v1alpha1.Target{{Name: v1alpha1.DefaultTarget, Cluster: "east", Patches: []v1alpha1.Patch{{Patch: "{}"}}}} // in a process of its own
	for i, step := range []struct {
		targets []v1alpha1.Target
		want    string
	}{{patched, "TooLarge: takes too long"}, {nil, ""}, {patched, "TooLarge: takes too long"}, {nil, ""}} {
		w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Targets = step.targets })
		if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.HasPrefix(got, step.want) || step.want == "" && got != "" {
			t.Errorf("after change %d condition Rendered says %q, want %q", i, got, step.want)
		}
	}
}
