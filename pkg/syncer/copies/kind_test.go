package copies

import (
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// definition is that of gizmos, established and with these versions, of which the first is stored. One that ends with ! is not served.
func definition(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Name = "gizmos.example.com"
	out.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gizmos", Kind: "Gizmo"},
	}
	out.Status.AcceptedNames = out.Spec.Names
	out.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	for i, v := range versions {
		served := v[len(v)-1] != '!'
		if !served {
			v = v[:len(v)-1]
		}
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: served, Storage: i == 0, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	return out
}

func TestKindOf(t *testing.T) {
	k, ok := KindOf(definition("v1beta1", "v1alpha1", "v2", "v1", "v3!"))
	if want := []string{"v1beta1", "v2", "v1", "v1alpha1"}; !ok || !reflect.DeepEqual(k.Versions, want) {
		t.Errorf("versions %v (%t), want the stored one, then the newest: %v", k.Versions, ok, want)
	}
	if k.Watched().Version != "v2" || k.GVK().String() != "example.com/v1beta1, Kind=Gizmo" {
		t.Errorf("it is %s and watched as %s", k.GVK(), k.Watched())
	}
	wide := definition("v1")
	wide.Spec.Scope = apiextensionsv1.ClusterScoped
	young := definition("v1")
	young.Status.Conditions = nil
	for name, crd := range map[string]*apiextensionsv1.CustomResourceDefinition{
		"of no namespace": wide, "not established": young, "not served": definition("v1!"),
	} {
		if k, ok := KindOf(crd); ok {
			t.Errorf("a kind %s counts as %v", name, k)
		}
	}
}

func TestServedBy(t *testing.T) {
	k, _ := KindOf(definition("v2", "v1", "v1beta1"))
	for name, test := range map[string]struct {
		served []string
		want   string
	}{
		"nothing is known":                         {nil, "v2"},
		"the preferred one":                        {[]string{"Gizmo.v1.example.com", "Gizmo.v2.example.com", "Pod.v1"}, "v2"},
		"the next best":                            {[]string{"Gizmo.v1.example.com", "Gizmo.v1beta1.example.com"}, "v1"},
		"none that both know":                      {[]string{"Gizmo.v3.example.com"}, ""},
		"a kind of the name in a group of its own": {[]string{"Gizmo.v2.other.com"}, ""},
	} {
		if got, ok := k.servedBy(test.served); got != test.want || ok != (test.want != "") {
			t.Errorf("%s: version %q (%t), want %q", name, got, ok, test.want)
		}
	}
}
