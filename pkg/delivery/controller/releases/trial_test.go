package releases

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"a":"b"}}`

func TestARevisionIsTriedBeforeAnythingOfItIsApplied(t *testing.T) {
	deployments := appsv1.Resource("deployments")
	forbidden := apierrors.NewForbidden(deployments, "web", errors.New("deployer cannot patch"))
	invalid := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", field.ErrorList{field.Required(field.NewPath("spec", "selector"), "")})
	denied := webhookerrors.ToStatusErr("policy.example.com", &metav1.Status{Message: "the image is of nobody known"})
	bare := webhookerrors.ToStatusErr("policy.example.com", &metav1.Status{Message: "no such team", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	for name, test := range map[string]struct {
		answer error
		phase  v1alpha1.ReleasePhase
		says   string
	}{
		"what is well is applied":                           {phase: v1alpha1.ReleaseSucceeded},
		"what is forbidden is named":                        {forbidden, v1alpha1.ReleaseFailed, `target "east": Deployment/web: deployments.apps "web" is forbidden: deployer cannot patch`},
		"what is invalid is, by its path":                   {invalid, v1alpha1.ReleaseFailed, "spec.selector: Required value"},
		"what cannot be told is waited for":                 {apierrors.NewInternalError(errors.New("no webhook answers")), v1alpha1.ReleasePending, "no webhook answers"},
		"what a webhook denies without a reason is refused": {denied, v1alpha1.ReleaseFailed, "the image is of nobody known"},
		"what it does not find is no excuse":                {bare, v1alpha1.ReleaseFailed, "no such team"},
		"what cannot be tried is not held by clusters":      {webhookerrors.NewDryRunUnsupportedErr("policy.example.com"), v1alpha1.ReleaseFailed, "does not support dry run"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(nil, both...)
			w.unfit["Deployment/web"] = test.answer
			w.revise(1, both, settings, deploymentOf("one"))
			w.asks("web-a", "web-v1", nil)
			w.step()
			release := w.until("web-a", test.phase)
			if !strings.Contains(release.Status.Message, test.says) {
				t.Errorf("says %q, want %q", release.Status.Message, test.says)
			}
			// Both targets have the same.
			slices.Sort(w.trials)
			if got := slices.Compact(slices.Clone(w.trials)); !slices.Equal(got, []string{"ConfigMap/settings", "Deployment/web"}) {
				t.Errorf("tried are %v", w.trials)
			}
			if test.phase == v1alpha1.ReleaseSucceeded {
				if len(w.trials) != 2 {
					t.Errorf("tried are %v, want each once", w.trials)
				}
				return
			}
			if len(w.writes) > 0 {
				t.Errorf("written are %v", w.writes)
			}
			if test.phase == v1alpha1.ReleasePending {
				delete(w.unfit, "Deployment/web")
				w.until("web-a", v1alpha1.ReleaseSucceeded)
			}
		})
	}
}

func TestWhatRunsStaysWhenANewRevisionIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(nil)
		w.unfit["Deployment/web"] = apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("no"))
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		w.until("web-b", v1alpha1.ReleaseFailed)
		w.settled()
		if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		w.unfit["Deployment/web"] = nil
		w.asks("web-c", "web-v2", nil)
		w.until("web-c", v1alpha1.ReleaseSucceeded)
	})
}

func TestAPodIsNotTriedWhoseServiceAccountComesWithIt(t *testing.T) {
	w := newWorld(t, both...)
	w.given(nil, both...)
	w.revise(1, both, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"once"},"spec":{"serviceAccountName":"robot","containers":[{"name":"once","image":"one"}]}}`)
	w.asks("web-a", "web-v1", nil)
	w.step()
	if !slices.Equal(w.trials, []string{"ServiceAccount/robot"}) {
		t.Errorf("tried are %v", w.trials)
	}
}

func TestWhatIsRefusedIsNotPlaced(t *testing.T) {
	w := newWorld(t, both...)
	w.given(nil)
	w.unfit["Deployment/web"] = apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("deployer cannot patch"))
	w.revise(1, []string{v1alpha1.DefaultTarget}, deploymentOf("one"))
	w.asks("web-a", "web-v1", nil)
	release := w.until("web-a", v1alpha1.ReleaseFailed)
	if got := release.Status.Message; !strings.Contains(got, "nothing of it is applied: Deployment/web") || len(w.writes) > 0 {
		t.Errorf("says %q, written are %v", got, w.writes)
	}
}

// Clusters hold what the revision says. So what admission would make otherwise of their pods would not reach them.
func TestClustersDoNotHoldWhatAdmissionChanges(t *testing.T) {
	for name, test := range map[string]struct {
		admits func(template map[string]any)
		says   string
	}{
		"an image": {func(template map[string]any) {
			containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
			containers[0].(map[string]any)["image"] = "safe"
			_ = unstructured.SetNestedSlice(template, containers, "spec", "containers")
		}, `Deployment/web: admission in the logical cluster sets /spec/template/spec/containers/0/image to "safe"`},
		"something more": {func(template map[string]any) {
			_ = unstructured.SetNestedField(template, true, "spec", "hostUsers")
		}, "sets /spec/template/spec/hostUsers to true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(nil, both...)
			w.admits = func(in *unstructured.Unstructured) {
				if template, has, _ := unstructured.NestedFieldNoCopy(in.Object, "spec", "template"); has {
					test.admits(template.(map[string]any))
				}
			}
			w.revise(1, both, settings, deploymentOf("one"))
			w.asks("web-a", "web-v1", nil)
			release := w.until("web-a", v1alpha1.ReleaseFailed)
			if !strings.Contains(release.Status.Message, test.says) || len(w.writes) > 0 {
				t.Errorf("says %q, written are %v", release.Status.Message, w.writes)
			}
			w.admits = nil
			w.asks("web-b", "web-v1", nil)
			w.until("web-b", v1alpha1.ReleaseSucceeded)
		})
	}
}
