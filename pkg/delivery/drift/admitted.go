package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// templates are the fields by which objects say what pods are made.
var templates = [][]string{{"spec", "template"}, {"spec", "jobTemplate"}}

// Admitted returns what admission makes of the pods of a manifest that the manifest does not say: as Wanted what would be stored, as Found what the
// manifest has. What was added and is there already was somebody's, and does not count. All three have their defaults; present is nil for an object that
// is not there yet.
func Admitted(manifest, admitted, present *unstructured.Unstructured) []Difference {
	if admitted.GetKind() == "Pod" && admitted.GroupVersionKind().Group == "" {
		// The server itself completes pods with what no manifest says.
		return stated(manifest, admitted, []string{"spec"})
	}
	var out []Difference
	for _, path := range templates {
		out = append(out, stated(manifest, admitted, path)...)
		out = append(out, added(manifest, admitted, present, path)...)
	}
	return out
}

// stated are the fields of a manifest that are not stored as it says.
func stated(manifest, admitted *unstructured.Unstructured, path []string) []Difference {
	w := walk{}
	if says, has, _ := unstructured.NestedFieldNoCopy(content(manifest), path...); has {
		stored, _, _ := unstructured.NestedFieldNoCopy(content(admitted), path...)
		w.value(path, says, stored, says)
	}
	return w.found
}

// added are the fields that would be stored, and are neither in the manifest nor there already. Those that the manifest has otherwise are stated.
func added(manifest, admitted, present *unstructured.Unstructured, path []string) []Difference {
	stored, has, _ := unstructured.NestedFieldNoCopy(content(admitted), path...)
	if !has {
		return nil
	}
	lacks := func(object *unstructured.Unstructured) []Difference {
		w := walk{}
		is, _, _ := unstructured.NestedFieldNoCopy(content(object), path...)
		w.value(path, stored, stored, is)
		return w.found
	}
	out := slices.DeleteFunc(lacks(manifest), func(d Difference) bool { return d.Found != nil })
	if present == nil {
		return out
	}
	lacking := lacks(present)
	return slices.DeleteFunc(out, func(d Difference) bool {
		return !slices.ContainsFunc(lacking, func(other Difference) bool { return other.Path == d.Path })
	})
}
