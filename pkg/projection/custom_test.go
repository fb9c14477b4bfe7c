package projection

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

var gizmos = Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}, "gizmos", nil)

// gizmo returns an object of a custom kind, written as JSON without apiVersion and kind.
func gizmo(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"example.com/v1","kind":"Gizmo",`+text[1:]), &out.Object); err != nil {
		t.Fatal(err)
	}
	// As a client decodes it: whole numbers are int64.
	data, err := out.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestACustomObjectIsProjectedWholeWithoutWhatMeansSomethingAboveAlone(t *testing.T) {
	in := gizmo(t, `{"metadata":{"namespace":"shop","name":"one","uid":"u1","resourceVersion":"7","generation":3,
		"creationTimestamp":"2026-11-20T12:00:00Z","finalizers":["example.com/hold","manifold.dev/projection"],
		"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"u0"}],
		"labels":{"app":"shop"},"annotations":{"note":"kept","manifold.dev/clusters":"east","manifold.dev/placement":"{}",
		"kubectl.kubernetes.io/last-applied-configuration":"{}"}},
		"spec":{"size":2,"future":{"deep":[1,2.5,{"x":null}]}},"data":"top level","status":{"phase":"Above"}}`)
	before := in.DeepCopy()
	out, err := gizmos.Project(in, Part{}, Target{LogicalCluster: "lc", Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	got := out.(*unstructured.Unstructured)
	hash := got.GetAnnotations()[v1alpha1.AnnotationProjection]
	want := gizmo(t, `{"metadata":{"namespace":"shop","name":"one","labels":{"app":"shop","manifold.dev/logical-cluster":"lc"},
		"annotations":{"note":"kept","manifold.dev/namespace":"shop","manifold.dev/name":"one","manifold.dev/uid":"u1",
		"manifold.dev/projection":"`+hash+`"}},
		"spec":{"size":2,"future":{"deep":[1,2.5,{"x":null}]}},"data":"top level"}`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" || hash == "" {
		t.Errorf("projection, hash %q: %s", hash, diff)
	}
	got.Object["spec"].(map[string]any)["size"] = int64(9)
	if diff := cmp.Diff(before.Object, in.Object); diff != "" {
		t.Errorf("the object above was changed: %s", diff)
	}
}

func TestACustomProjectionHashTellsNothingOfTheStatus(t *testing.T) {
	hash := func(text string) string {
		out, err := gizmos.Project(gizmo(t, text), Part{}, Target{LogicalCluster: "lc", Cluster: "east"})
		if err != nil {
			t.Fatal(err)
		}
		return out.GetAnnotations()[v1alpha1.AnnotationProjection]
	}
	one := hash(`{"metadata":{"namespace":"shop","name":"one","generation":1},"spec":{"a":1,"b":2}}`)
	same := hash(`{"metadata":{"namespace":"shop","name":"one","generation":2},"spec":{"b":2,"a":1},"status":{"phase":"Up"}}`)
	other := hash(`{"metadata":{"namespace":"shop","name":"one","generation":1},"spec":{"a":1,"b":3}}`)
	if one != same || one == other {
		t.Errorf("hashes %q, %q of an equal one and %q of another", one, same, other)
	}
}

func TestPlanOfACustomObject(t *testing.T) {
	const marks = `"labels":{"manifold.dev/logical-cluster":"lc"},"annotations":{"manifold.dev/namespace":"shop","manifold.dev/name":"one",` +
		`"manifold.dev/uid":"u1","manifold.dev/projection":"HASH"}`
	desired, err := gizmos.Project(gizmo(t, `{"metadata":{"namespace":"shop","name":"one","uid":"u1"},"spec":{"size":2,"tags":["a","b"]}}`),
		Part{}, Target{LogicalCluster: "lc", Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	hash := desired.GetAnnotations()[v1alpha1.AnnotationProjection]
	for name, test := range map[string]struct {
		live string
		want Step
	}{
		"one of somebody else is a conflict":      {`{"metadata":{"name":"one"},"spec":{"size":2}}`, Conflict},
		"one that is as it should be is left":     {`{"metadata":{` + marks + `},"spec":{"size":2,"tags":["a","b"]}}`, Nothing},
		"what the cluster adds and says is left":  {`{"metadata":{` + marks + `},"spec":{"size":2.0,"tags":["a","b"],"extra":{"a":1}},"status":{}}`, Nothing},
		"a changed field is put back":             {`{"metadata":{` + marks + `},"spec":{"size":3,"tags":["a","b"]}}`, Apply},
		"a changed list is put back":              {`{"metadata":{` + marks + `},"spec":{"size":2,"tags":["b","a"]}}`, Apply},
		"a field that is missing is put back":     {`{"metadata":{` + marks + `}}`, Apply},
		"one that is being deleted is waited for": {`{"metadata":{"deletionTimestamp":"2026-11-20T12:00:00Z",` + marks + `}}`, Wait},
		"one of an object that was deleted is replaced": {`{"metadata":{"labels":{"manifold.dev/logical-cluster":"lc"},"annotations":{` +
			`"manifold.dev/namespace":"shop","manifold.dev/name":"one","manifold.dev/uid":"u0"}}}`, Replace},
		"one of another logical cluster is a conflict": {`{"metadata":{"labels":{"manifold.dev/logical-cluster":"other"},"annotations":{` +
			`"manifold.dev/namespace":"shop","manifold.dev/name":"one","manifold.dev/uid":"u1"}}}`, Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			live := gizmo(t, test.live)
			if annotations := live.GetAnnotations(); annotations[v1alpha1.AnnotationProjection] == "HASH" {
				annotations[v1alpha1.AnnotationProjection] = hash
				live.SetAnnotations(annotations)
			}
			if got := gizmos.Plan(desired, live); got.Step != test.want {
				t.Errorf("step %s (%s), want %s", got.Step, got.Reason, test.want)
			}
		})
	}
}

func TestCustomWorkload(t *testing.T) {
	w, err := CustomWorkload(gizmos.GVK, []string{"v1beta1"}, &metav1.ObjectMeta{Namespace: "shop", Name: "one",
		Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{v1alpha1.AnnotationClusters: "west, east"}})
	want := placement.Workload{GVK: gizmos.GVK, Versions: []string{"v1beta1"}, Custom: true, Namespace: "shop", Name: "one",
		Labels: map[string]string{"app": "shop"}, Replicas: 1, Pin: &v1alpha1.Pin{Names: []string{"east", "west"}}}
	if diff := cmp.Diff(want, w); diff != "" || err != nil {
		t.Errorf("err %v, workload: %s", err, diff)
	}
	if _, err := CustomWorkload(gizmos.GVK, nil, &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationClusters: ","}}); err == nil {
		t.Error("a pin that does not parse is accepted")
	}
}

// FuzzCoversContent checks that everything covers itself, also with more around it, and that one changed value is noticed.
func FuzzCoversContent(f *testing.F) {
	for _, seed := range []string{`{"spec":{"a":[1,{"b":null}]}}`, `{"x":1.0}`, `{"spec":"text","list":[]}`, `{"a":{"b":{"c":true}}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var one, other map[string]any
		if json.Unmarshal([]byte(text), &one) != nil || json.Unmarshal([]byte(text), &other) != nil || other == nil {
			t.Skip()
		}
		other["added by somebody"] = "x"
		if !coversContent(one, other) {
			t.Errorf("%s does not cover itself", text)
		}
		for key := range one {
			switch key {
			case "apiVersion", "kind", "metadata", "status":
				continue
			}
			other[key] = struct{}{}
			if coversContent(one, other) {
				t.Errorf("%s without its %q is covered", text, key)
			}
			break
		}
	})
}

func TestWhatIsNestedTooDeepGoesNowhere(t *testing.T) {
	kind := Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets", nil)
	widget := func(field string, levels int) *unstructured.Unstructured {
		var deep any = "bottom"
		for i := range levels {
			if i%2 == 0 {
				deep = []any{"beside", deep}
			} else {
				deep = map[string]any{"a": deep, "b": "beside"}
			}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "shop", "name": "web"}, field: deep,
		}}
	}
	for name, test := range map[string]struct {
		in   *unstructured.Unstructured
		want string
	}{
		"as deep as may be":             {in: widget("spec", DeepestContent)},
		"deeper":                        {in: widget("spec", DeepestContent+1), want: "its spec is nested deeper than 450 levels, which is more than is read of a cluster"},
		"any field":                     {in: widget("data", 9000), want: "its data is nested deeper than 450 levels, which is more than is read of a cluster"},
		"a status, which goes nowhere":  {in: widget("status", 9000)},
		"what is no object and no list": {in: widget("spec", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			if ok, reason := kind.Projectable(test.in); ok != (test.want == "") || reason != test.want {
				t.Errorf("projectable %t: %q, want %q", ok, reason, test.want)
			}
		})
	}
}
