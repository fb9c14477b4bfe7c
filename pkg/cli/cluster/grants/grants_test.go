package grants

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestPieces(t *testing.T) {
	all, err := assemble(everywhere("0a1b2c3d-4e5f-6789")...)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range all {
		kinds = append(kinds, p.Object.GetKind())
		if want := p.Resource.GroupVersion().String(); p.Object.GetAPIVersion() != want {
			t.Errorf("%s has the version %s, want %s", p, p.Object.GetAPIVersion(), want)
		}
		if p.Object.GetKind() != "Namespace" && !strings.HasPrefix(p.Object.GetName(), "manifold-syncer-0a1b2c3d") {
			t.Errorf("%s does not carry the logical cluster's name", p)
		}
		if _, marked := p.Object.GetLabels()[manifoldv1alpha1.LabelLogicalCluster]; marked {
			t.Errorf("%s is marked as owned, so the syncer would remove what it lives by", p)
		}
		if _, has := p.Object.Object["status"]; has {
			t.Errorf("%s claims the status", p)
		}
	}
	if last := len(kinds) - 1; kinds[last] != "ClusterRoleBinding" || slices.Contains(kinds[:last], "ClusterRoleBinding") {
		t.Errorf("the order is %v: the syncer has rights before it is fenced in", kinds)
	}
}

// A newer version may have other words for a refusal. That is no reason to join clusters again.
func TestAPolicyWithOtherWordsIsNoDifference(t *testing.T) {
	all, err := assemble(everywhere(testLogical)...)
	if err != nil {
		t.Fatal(err)
	}
	policies := 0
	for _, p := range all {
		if p.Object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		policies++
		live := p.Object.DeepCopy()
		validations, _, _ := unstructured.NestedSlice(live.Object, "spec", "validations")
		first := validations[0].(map[string]any)
		first["message"], first["messageExpression"] = "no", `"no"`
		if err := unstructured.SetNestedSlice(live.Object, validations, "spec", "validations"); err != nil {
			t.Fatal(err)
		}
		if differs, err := p.Differences(live); err != nil || len(differs) > 0 {
			t.Errorf("%s: %v differs (%v)", p, differs, err)
		}
		if patch, err := p.Patch(live); err != nil || patch != nil {
			t.Errorf("%s: the words are put back by %s (%v)", p, patch, err)
		}
		if got, _, _ := unstructured.NestedSlice(live.Object, "spec", "validations"); got[0].(map[string]any)["message"] != "no" {
			t.Errorf("%s: what was compared has changed", p)
		}
		first["expression"] = "true"
		if err := unstructured.SetNestedSlice(live.Object, validations, "spec", "validations"); err != nil {
			t.Fatal(err)
		}
		if differs, err := p.Differences(live); err != nil || !slices.Equal(differs, []string{"differs: spec.validations[0].expression"}) {
			t.Errorf("%s: %v differs (%v)", p, differs, err)
		}
	}
	if policies == 0 {
		t.Error("there is no policy")
	}
}
