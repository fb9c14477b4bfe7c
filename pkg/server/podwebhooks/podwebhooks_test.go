package podwebhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// world is a logical cluster with cluster east, which asks with the token "secret", and its webhooks.
type world struct {
	newcomer func(*corev1.Pod) (*syncer.Newcomer, error)
	change   func(*corev1.Pod) error
	asked    []corev1.Pod
	named    []bool
}

func (w *world) Accepts(cluster, token string) bool { return cluster == "east" && token == "secret" }

func (w *world) Newcomer(_ context.Context, _ string, pod *corev1.Pod) (*syncer.Newcomer, error) {
	if w.newcomer != nil {
		return w.newcomer(pod)
	}
	shown := pod.DeepCopy()
	delete(shown.Labels, "below")
	return &syncer.Newcomer{Shown: shown, Controller: appsv1.SchemeGroupVersion.WithKind("ReplicaSet")}, nil
}

func (w *world) Admit(_ context.Context, pod *corev1.Pod, _ schema.GroupVersionKind, named, _ bool) (before, after *corev1.Pod, err error) {
	w.asked, w.named = append(w.asked, *pod), append(w.named, named)
	after = pod.DeepCopy()
	if w.change != nil {
		err = w.change(after)
	}
	return pod, after, err
}

func (w *world) ask(t *testing.T, path string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	handler := New(w, w, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	out := httptest.NewRecorder()
	handler.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body)))
	return out
}

const own = podhooks.PathPrefix + "east/secret"

func podBelow() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-abc-", Namespace: "shop", Labels: map[string]string{"app": "web", "below": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
}

func question(t *testing.T, object any, change ...func(*admissionv1.AdmissionRequest)) []byte {
	t.Helper()
	raw, ok := object.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
	}
	request := &admissionv1.AdmissionRequest{
		UID: "42", Kind: podKind, Namespace: "shop", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}
	for _, c := range change {
		c(request)
	}
	out, err := json.Marshal(&admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func answerOf(t *testing.T, w *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); w.Code != http.StatusOK || err != nil || review.Response == nil || review.Response.UID != "42" {
		t.Fatalf("answered with %d %s, %v", w.Code, w.Body, err)
	}
	return review.Response
}

func TestWhoIsAnswered(t *testing.T) {
	good := question(t, podBelow())
	for name, test := range map[string]struct {
		path string
		body []byte
		want int
	}{
		"a cluster with its token":         {own, good, http.StatusOK},
		"not with another":                 {podhooks.PathPrefix + "east/guess", good, http.StatusForbidden},
		"not in the name of another":       {podhooks.PathPrefix + "west/secret", good, http.StatusForbidden},
		"not without any":                  {podhooks.PathPrefix + "east/", good, http.StatusForbidden},
		"not below its path":               {own + "/api", good, http.StatusForbidden},
		"other paths as ever":              {"/api/v1/pods", good, http.StatusTeapot},
		"not what is too long":             {own, bytes.Repeat([]byte(" "), mostBody+1), http.StatusRequestEntityTooLarge},
		"not what is no review":            {own, []byte("x"), http.StatusBadRequest},
		"not a review without a request":   {own, []byte(`{"apiVersion":"admission.k8s.io/v1"}`), http.StatusBadRequest},
		"not a review of an early version": {own, bytes.Replace(good, []byte("k8s.io/v1"), []byte("k8s.io/v1beta1"), 1), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&world{}).ask(t, test.path, test.body); got.Code != test.want {
				t.Errorf("answered with %d %s, want %d", got.Code, got.Body, test.want)
			}
		})
	}
}

func TestWhatWebhooksAreNotAsked(t *testing.T) {
	for name, body := range map[string][]byte{
		"what is no pod":   question(t, podBelow(), func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "ConfigMap" }),
		"what is changed":  question(t, podBelow(), func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }),
		"what is bound":    question(t, podBelow(), func(r *admissionv1.AdmissionRequest) { r.SubResource = "binding" }),
		"what is not ours": question(t, podBelow()),
	} {
		w := &world{newcomer: func(*corev1.Pod) (*syncer.Newcomer, error) { return nil, nil }}
		if got := answerOf(t, w.ask(t, own, body)); !got.Allowed || got.Patch != nil || len(w.asked) > 0 {
			t.Errorf("%s: answered with %+v, asked about %v", name, got, w.asked)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	another := podBelow()
	another.Namespace = "bank"
	for name, test := range map[string]struct {
		world world
		pod   any
		want  string
	}{
		"by a webhook": {world{change: func(*corev1.Pod) error {
			return apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("I do not like it"))
		}}, podBelow(), "I do not like it"},
		"as none of a workload there": {world{newcomer: func(*corev1.Pod) (*syncer.Newcomer, error) {
			return nil, &syncer.NotPlacedError{Reason: errors.New("it is elsewhere")}
		}}, podBelow(), "it is elsewhere"},
		"as changed beyond what can be": {world{change: func(p *corev1.Pod) error { p.Spec.NodeName = "n"; return nil }}, podBelow(), "spec.nodeName"},
		"as marked":                     {world{change: func(p *corev1.Pod) error { p.Labels[v1alpha1.LabelLogicalCluster] = "x"; return nil }}, podBelow(), "reserved for Manifold"},
		"as changed too much": {world{change: func(p *corev1.Pod) error {
			p.Annotations = map[string]string{"a": strings.Repeat("x", podhooks.MaxChange)}
			return nil
		}}, podBelow(), "more than the"},
		"as of another namespace":          {world{}, another, "another namespace"},
		"as nothing that anybody can read": {world{}, []byte(`{"spec":7}`), "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answerOf(t, test.world.ask(t, own, question(t, test.pod))); got.Allowed || got.Patch != nil || !strings.Contains(got.Result.Message, test.want) {
				t.Errorf("answered with %+v, want %q", got, test.want)
			}
		})
	}
}

// Whether a pod may be made that nobody can say anything about is for the failurePolicy of the webhook in the cluster.
func TestWhatIsNotKnownIsNoAnswer(t *testing.T) {
	w := &world{newcomer: func(*corev1.Pod) (*syncer.Newcomer, error) { return nil, errors.New("not seen yet") }}
	if got := w.ask(t, own, question(t, podBelow())); got.Code != http.StatusServiceUnavailable {
		t.Errorf("answered with %d %s", got.Code, got.Body)
	}
}

func TestWhatIsAdmittedIsTheClustersPodWithWhatWebhooksChanged(t *testing.T) {
	raw, err := json.Marshal(podBelow())
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.Replace(raw, []byte(`"image":"app:1"`), []byte(`"image":"app:1","futureField":{"a":1}`), 1)
	w := &world{}
	if got := answerOf(t, w.ask(t, own, question(t, raw))); !got.Allowed || got.Patch != nil {
		t.Errorf("for no change, answered with %+v", got)
	}
	w.change = func(p *corev1.Pod) error {
		p.Labels["admitted"] = "yes"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		return nil
	}
	got := answerOf(t, w.ask(t, own, question(t, raw)))
	var patch []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(got.Patch, &patch); err != nil || !got.Allowed || *got.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("answered with %+v: %v", got, err)
	}
	values := map[string]string{}
	for _, o := range patch {
		values[o.Path] = string(o.Value)
	}
	var name string
	var annotations, labels map[string]string
	for path, into := range map[string]any{"/metadata/name": &name, "/metadata/annotations": &annotations, "/metadata/labels": &labels} {
		if err := json.Unmarshal([]byte(values[path]), into); err != nil {
			t.Fatalf("%s is %s: %v", path, values[path], err)
		}
	}
	if !strings.HasPrefix(name, "web-abc-") || len(name) <= len("web-abc-") || w.asked[1].Name != name || slices.Contains(w.named, true) {
		t.Errorf("its name is %q, asked was about %q", name, w.asked[1].Name)
	}
	if labels["admitted"] != "yes" || labels["below"] != "x" || labels["app"] != "web" || annotations[v1alpha1.AnnotationAdmitted] == "" {
		t.Errorf("its labels are %v, its annotations %v", labels, annotations)
	}
	for _, want := range []string{`"futureField":{"a":1}`, `{"name":"A","value":"b"}`, `"image":"app:1"`} {
		if !strings.Contains(values["/spec"], want) {
			t.Errorf("its spec is %s, without %s", values["/spec"], want)
		}
	}
}

// FuzzQuestion has a cluster ask anything. It gets an answer, and no patch that was not asked of a webhook.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","request":{"kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","namespace":"shop","object":{"metadata":{"generateName":"a-"}}}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","request":{"kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{"metadata":null,"spec":{"containers":[null]}}}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","request":{"kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":[]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := &world{change: func(p *corev1.Pod) error {
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels["admitted"] = "yes"
			return nil
		}}
		if got := w.ask(t, own, body); got.Code == http.StatusTeapot || got.Code == http.StatusOK && len(w.asked) == 0 && strings.Contains(got.Body.String(), "patchType") {
			t.Errorf("answered with %d %s", got.Code, got.Body)
		}
	})
}
