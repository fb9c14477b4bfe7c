package writer

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// cluster answers what is asked of one object, and writes down what was.
type cluster struct {
	// answers are given by verb, as JSON or as an error. What is not named is answered as not found.
	answers map[string]any
	asked   []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	verb := r.Method
	if verb == http.MethodPatch {
		verb, _, _ = strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Type"), "application/"), "+")
	}
	said := verb
	for _, uid := range []string{"below", "elsewhere"} {
		if strings.Contains(string(body), `"uid":"`+uid+`"`) {
			said += " of " + uid
		}
	}
	if r.URL.Query().Get("force") == "true" {
		said += " by force"
	}
	c.asked = append(c.asked, said)
	answer, known := c.answers[verb]
	if !known {
		answer = apierrors.NewNotFound(schema.GroupResource{}, "web")
	}
	w.Header().Set("Content-Type", "application/json")
	var status *apierrors.StatusError
	if err, failed := answer.(error); failed && errors.As(err, &status) {
		w.WriteHeader(int(status.ErrStatus.Code))
		answer = status.ErrStatus
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// object is a Deployment, or an object of a custom kind, as the cluster holds it with these marks.
func object(kind projection.Kind, annotations map[string]any, managed ...any) *unstructured.Unstructured {
	metadata := map[string]any{"namespace": "shop", "name": "web", "uid": "below", "annotations": annotations, "managedFields": managed}
	if annotations != nil {
		metadata["labels"] = map[string]any{v1alpha1.LabelLogicalCluster: "logical"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.GVK.GroupVersion().String(), "kind": kind.GVK.Kind, "metadata": metadata,
	}}
}

// TestSteps takes the same steps with a built-in and with a custom kind.
func TestSteps(t *testing.T) {
	ours := map[string]any{v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "web", v1alpha1.AnnotationUID: "above"}
	created := map[string]any{
		"manager": v1alpha1.FieldManager, "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-20T12:00:00Z",
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}},
	}
	taken := apierrors.NewAlreadyExists(schema.GroupResource{}, "web")
	for name, test := range map[string]struct {
		step    projection.Step
		managed []any
		stored  map[string]any // what a GET shows by its annotations
		taken   bool
		yields  bool
		want    []string
		wantErr error
	}{
		"what is not there is made": {step: projection.Create, want: []string{"POST"}},
		"what is somebody else's is left alone": {
			step: projection.Create, taken: true, stored: map[string]any{}, want: []string{"POST", "GET"}, wantErr: &ConflictError{},
		},
		"unless that gives way": {
			step: projection.Create, taken: true, stored: map[string]any{}, yields: true, want: []string{"POST", "GET", "apply-patch of below by force"},
		},
		"what is ours and not seen yet is brought in line": {
			step: projection.Create, taken: true, stored: ours, want: []string{"POST", "GET", "apply-patch of below by force"},
		},
		"what is gone again is tried once more": {step: projection.Create, taken: true, want: []string{"POST", "GET"}, wantErr: ErrNotYet},
		"an apply is for the object that was seen": {
			step: projection.Apply, stored: ours, want: []string{"apply-patch of below by force"},
		},
		"the first one takes over the fields that were created": {
			step: projection.Apply, managed: []any{created}, stored: ours, want: []string{"GET", "json-patch", "apply-patch of below by force"},
		},
		"but of nothing else": {step: projection.Apply, managed: []any{created}, want: []string{"GET"}, wantErr: ErrNotYet},
		"a deletion is of the object that was seen, and what is gone is no error": {step: projection.Delete, want: []string{"DELETE of below"}},
		"what is replaced is deleted first":                                       {step: projection.Replace, want: []string{"DELETE of below"}},
		"a conflict is told":                                                      {step: projection.Conflict, wantErr: &ConflictError{}},
		"what waits is left alone":                                                {step: projection.Wait},
	} {
		builtin, _ := projection.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments"))
		custom := projection.Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}, "gizmos", nil)
		for _, kind := range []projection.Kind{builtin, custom} {
			t.Run(name+", "+kind.GVK.Kind, func(t *testing.T) {
				c := &cluster{answers: map[string]any{"POST": object(kind, ours), "apply-patch": object(kind, ours), "json-patch": object(kind, ours)}}
				if test.taken {
					c.answers["POST"] = taken
				}
				if test.stored != nil {
					c.answers["GET"] = object(kind, test.stored, test.managed...)
				}
				w := writerTo(t, c, kind)
				w.Yields = func(projection.Object) bool { return test.yields }
				live := object(kind, ours, test.managed...)
				desired := kind.New()
				desired.SetNamespace("shop")
				desired.SetName("web")
				desired.GetObjectKind().SetGroupVersionKind(kind.GVK)
				desired.SetLabels(live.GetLabels())
				annotations := live.GetAnnotations()
				annotations[v1alpha1.AnnotationProjection] = "hash"
				desired.SetAnnotations(annotations)
				_, err := w.Act(t.Context(), projection.Action{Step: test.step, Reason: "why"}, desired, live)
				var conflict *ConflictError
				if isConflict := errors.As(err, &conflict); !errors.Is(err, test.wantErr) && !(isConflict && errors.As(test.wantErr, &conflict)) {
					t.Errorf("error %v, want %v", err, test.wantErr)
				}
				if !slices.Equal(c.asked, test.want) {
					t.Errorf("asked %q, want %q", c.asked, test.want)
				}
			})
		}
	}
}

func writerTo(t *testing.T, c *cluster, kind projection.Kind) Writer {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	if _, custom := kind.New().(*unstructured.Unstructured); custom {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return Writer{Kind: kind, Client: Dynamic{client.Resource(kind.Resource).Namespace("shop")}}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return Writer{Kind: kind, Client: REST{Client: client.AppsV1().RESTClient(), Kind: kind, Namespace: "shop"}}
}

func TestOrphanLosesOurMarksAlone(t *testing.T) {
	kind := projection.Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}, "gizmos", nil)
	c := &cluster{}
	live := object(kind, nil)
	if err := writerTo(t, c, kind).Orphan(t.Context(), live); err != nil {
		t.Errorf("error %v although it is gone", err)
	}
	if want := []string{"merge-patch of below"}; !slices.Equal(c.asked, want) {
		t.Errorf("asked %q, want %q", c.asked, want)
	}
}

func TestErrorsThatLastAreShown(t *testing.T) {
	broken := apierrors.NewInternalError(errors.New("failed calling webhook"))
	for name, test := range map[string]struct {
		err   error
		tries int
		want  bool
	}{
		"one that passes":                         {err: ErrNotYet, tries: 100},
		"one inside the cluster, at first":        {err: broken, tries: BrokenTries - 1},
		"one inside the cluster that goes on":     {err: broken, tries: BrokenTries, want: true},
		"one that takes a person, from the start": {err: apierrors.NewForbidden(schema.GroupResource{}, "web", nil), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shown(test.err, test.tries); got != test.want {
				t.Errorf("shown: %t, want %t", got, test.want)
			}
		})
	}
}

// A gateway before the API server may answer in its place, and say that all is well. Nothing was written then, and no watch tells.
func TestAnAnswerThatIsNoneOfAnAPIServerIsAnError(t *testing.T) {
	builtin, _ := projection.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments"))
	live := &appsv1.Deployment{}
	live.Name, live.UID = "web", "below"
	for name, test := range map[string]struct {
		body  string
		fails bool
	}{
		"an object as JSON":      {body: `{"kind":"Deployment","apiVersion":"apps/v1"}`},
		"an object as protobuf":  {body: "k8s\x00\n\x0c"},
		"a page of a gateway":    {body: "<html><body>Please log in</body></html>", fails: true},
		"a page without a word":  {body: "", fails: true},
		"the end of something":   {body: `"}}`, fails: true},
		"what a terminal obeys":  {body: "\x1b[2J", fails: true},
		"an object after blanks": {body: "\n {}"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			w := Writer{Kind: builtin, Client: REST{Client: client.AppsV1().RESTClient(), Kind: builtin, Namespace: "shop"}}
			for _, step := range []projection.Step{projection.Create, projection.Apply, projection.Delete} {
				_, err := w.Act(t.Context(), projection.Action{Step: step}, live.DeepCopy(), live)
				switch {
				case (err != nil) != test.fails:
					t.Errorf("%s: error %v, want one: %t", step, err, test.fails)
				case err != nil && (Refused(err) || strings.Contains(err.Error(), "\x1b")):
					t.Errorf("%s: error %q says that nothing was written: %t", step, err, Refused(err))
				}
			}
		})
	}
}
