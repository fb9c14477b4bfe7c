package releases

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/manifests"
)

// applied is a Deployment that a user has applied.
func applied(t *testing.T, image string) *appsv1.Deployment {
	t.Helper()
	out := &appsv1.Deployment{}
	if err := json.Unmarshal([]byte(deploymentOf(image)), out); err != nil {
		t.Fatal(err)
	}
	out.Namespace = "shop"
	return out
}

// manifestOf is what a revision has of what a user has applied.
func manifestOf(t *testing.T, object *appsv1.Deployment) string {
	t.Helper()
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{Object: live}
	out.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	content, err := manifests.FromLive(out).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func TestWhatUsersApplyIsTriedAsTheRevisionHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		there, revision string
		says            string
	}{
		"as it is there nobody is asked again": {there: "one", revision: "one"},
		"what a patch makes of it is asked":    {there: "one", revision: "evil", says: `target "east": Deployment/web: admission webhook "images.example.com" denied the request: nobody knows this image`},
		"and what it was once":                 {there: "two", revision: "one", says: "nobody knows this image"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(func(app *v1alpha1.Application) {
				app.Spec.Source = v1alpha1.Source{Selector: &v1alpha1.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
			}, both...)
			w.add(w.informer(appsv1.SchemeGroupVersion.WithResource("deployments")), applied(t, test.there))
			asked := 0
			w.dynamic.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
				in := &unstructured.Unstructured{}
				if err := in.UnmarshalJSON(action.(clienttesting.PatchAction).GetPatch()); err != nil {
					return true, nil, err
				}
				if _, whole := in.Object["spec"]; !whole {
					return false, nil, nil
				}
				asked++
				return true, in, webhookerrors.ToStatusErr("images.example.com", &metav1.Status{Message: "nobody knows this image"})
			})
			w.revise(1, both, manifestOf(t, applied(t, test.revision)))
			w.asks("web-a", "web-v1", nil)
			w.step()
			release := w.release("web-a")
			if test.says == "" {
				if release.Status.Phase == v1alpha1.ReleaseFailed || asked != 0 {
					t.Errorf("%s: %s, and %d questions", release.Status.Phase, release.Status.Message, asked)
				}
				return
			}
			if release.Status.Phase != v1alpha1.ReleaseFailed || !strings.Contains(release.Status.Message, test.says) || len(w.writes) > 0 {
				t.Errorf("%s: %s, written are %v", release.Status.Phase, release.Status.Message, w.writes)
			}
		})
	}
}
