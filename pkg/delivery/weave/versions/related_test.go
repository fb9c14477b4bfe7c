package versions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func ofFlux(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = out.UnmarshalJSON(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatBelongsToAnObjectOfFluxIsWhatItSays(t *testing.T) {
	source := func(kind, namespace, name string) Reference {
		return Reference{schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: kind}, namespace, name}
	}
	for name, test := range map[string]struct {
		object  string
		sources []Reference
		// made is nil where it does not say.
		made []Reference
	}{
		"a Kustomization": {
			object: `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: shop, name: web}, spec: {sourceRef: {kind: GitRepository, name: fleet, namespace: flux}},
  status: {inventory: {entries: [{id: shop_web_apps_Deployment, v: v1}, {id: _system__web_rbac.authorization.k8s.io_ClusterRole, v: v1}, {id: none}, {v: v1}, 7]}}}`,
			sources: []Reference{source("GitRepository", "flux", "fleet")},
			made: []Reference{
				{schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, "", "system:web"}, {schema.GroupKind{Group: "apps", Kind: "Deployment"}, "shop", "web"},
			},
		},
		"a HelmRelease of a chart": {
			object:  `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: shop, name: web}, spec: {chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}}}`,
			sources: []Reference{source("HelmRepository", "shop", "charts")},
		},
		"a HelmRelease of a source": {
			object:  `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: shop, name: web}, spec: {chartRef: {kind: OCIRepository, name: chart}}, status: {inventory: {entries: []}}}`,
			sources: []Reference{source("OCIRepository", "shop", "chart")}, made: []Reference{},
		},
		"one that makes no sense": {object: `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: shop, name: web}, spec: {chartRef: [], chart: {spec: {sourceRef: {kind: 7}}}}, status: {inventory: no}}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := ofFlux(t, test.object)
			for which, o := range map[string]*unstructured.Unstructured{"whole": o, "trimmed": TrimRelated(o)} {
				made, says := Inventory(o)
				if diff := cmp.Diff(test.sources, SourcesOf(o)); diff != "" {
					t.Errorf("%s, its sources (-want +got)\n%s", which, diff)
				}
				if says != (test.made != nil) || len(made) != len(test.made) || len(made) > 0 && cmp.Diff(test.made, made) != "" {
					t.Errorf("%s, it has made %v (%t), want %v", which, made, says, test.made)
				}
			}
		})
	}
}

func TestAnInventoryIsKeptNoFurtherThanItMayBe(t *testing.T) {
	entries := []any{map[string]any{"id": strings.Repeat("x", 10*mostID)}}
	for i := range 10 * MostRelated {
		entries = append(entries, map[string]any{"id": fmt.Sprintf("shop_web-%d_apps_Deployment", i), "more": strings.Repeat("y", 1000)})
	}
	o := ofFlux(t, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: shop, name: web}}`)
	if err := unstructured.SetNestedSlice(o.Object, entries, "status", "inventory", "entries"); err != nil {
		t.Fatal(err)
	}
	trimmed := TrimRelated(o)
	if made, _ := Inventory(trimmed); len(made) != MostRelated+1 {
		t.Errorf("%d are kept, want %d and one by which is seen that there are more", len(made), MostRelated)
	}
	if kept, err := trimmed.MarshalJSON(); err != nil || len(kept) > 100*MostRelated {
		t.Errorf("%d bytes are kept: %v", len(kept), err)
	}
}

func FuzzInventory(f *testing.F) {
	f.Add("podinfo_web_apps_Deployment")
	f.Add("_a__b_rbac.authorization.k8s.io_ClusterRole")
	f.Add("___")
	f.Add("a_\x1b[31m_c_D")
	f.Fuzz(func(t *testing.T, id string) {
		of := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"inventory": map[string]any{"entries": []any{map[string]any{"id": id}}}}}}
		refs, known := Inventory(of)
		if !known || len(refs) > 1 {
			t.Errorf("%q is %v", id, refs)
		}
		for _, ref := range refs {
			if strings.ContainsAny(ref.Name+ref.Namespace+ref.Kind.Kind+ref.Kind.Group, "\x1b\n") {
				t.Errorf("%q is shown as %q", id, ref)
			}
		}
	})
}
