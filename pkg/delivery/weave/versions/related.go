package versions

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/internal/text"
)

// Sources is the group of what objects of Flux have their content from.
const Sources = "source.toolkit.fluxcd.io"

// Reference names an object.
type Reference struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// sourcePaths are where objects of Flux name what their content is from.
var sourcePaths = [][]string{{"spec", "sourceRef"}, {"spec", "chartRef"}, {"spec", "chart", "spec", "sourceRef"}}

// SourcesOf are the objects that the content of an object of Flux comes from.
func SourcesOf(o *unstructured.Unstructured) []Reference {
	var out []Reference
	for _, path := range sourcePaths {
		in := func(field string) string {
			return text.Line(textIn(o, append(path[:len(path):len(path)], field)...), mostName)
		}
		if kind, name := in("kind"), in("name"); kind != "" && name != "" {
			out = append(out, Reference{schema.GroupKind{Group: Sources, Kind: kind}, cmp.Or(in("namespace"), o.GetNamespace()), name})
		}
	}
	return out
}

// Inventory are the objects that an object of Flux says that it has made; false if it does not say.
func Inventory(o *unstructured.Unstructured) ([]Reference, bool) {
	entries, found, err := unstructured.NestedSlice(o.Object, "status", "inventory", "entries")
	if !found || err != nil {
		return nil, false
	}
	var out []Reference
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		id, _ := fields["id"].(string)
		parts := strings.Split(id, "_") // NAMESPACE_NAME_GROUP_KIND, in which a colon of a name is two underscores
		if len(parts) < 4 {
			continue
		}
		last := len(parts) - 1
		said := func(part string) string { return text.Line(part, mostName) }
		out = append(out, Reference{
			schema.GroupKind{Group: said(parts[last-1]), Kind: said(parts[last])}, said(parts[0]), said(strings.ReplaceAll(strings.Join(parts[1:last-1], "_"), "__", ":")),
		})
	}
	return Sorted(out), true
}

// Sorted sorts references by kind, namespace and name.
func Sorted(in []Reference) []Reference {
	slices.SortFunc(in, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return in
}

const (
	// MostRelated is how many entries of an inventory are kept, and mostID bounds one, in bytes.
	MostRelated = 200
	mostID      = 512
)

// TrimRelated returns what Trim does, and what says which objects belong to one of Flux.
func TrimRelated(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := Trim(o)
	for _, path := range sourcePaths {
		for _, field := range []string{"kind", "namespace", "name"} {
			at := append(path[:len(path):len(path)], field)
			if value := text.Line(textIn(o, at...), mostName); value != "" {
				set(out, value, at...)
			}
		}
	}
	found, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "inventory", "entries")
	entries, is := found.([]any)
	if !is {
		return out
	}
	ids := []any{}
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		if id, _ := fields["id"].(string); id != "" && len(id) <= mostID {
			ids = append(ids, map[string]any{"id": id})
		}
		if len(ids) > MostRelated { // one more, by which is seen that there are more
			break
		}
	}
	set(out, ids, "status", "inventory", "entries")
	return out
}
