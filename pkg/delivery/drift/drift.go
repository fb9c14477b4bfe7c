// Package drift says which fields of an object are not what was released, and when what was released is put back.
package drift

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference is a field that is not what it is to be.
type Difference struct {
	// Path is the field as a JSON pointer. The positions of list items are those of the manifest.
	Path string
	// Wanted and Found are values as JSON holds them. They are nil where there is nothing.
	Wanted, Found any
}

// Compare returns the fields of a manifest that differ in what there would be if it were applied and in what is found. Fields that the manifest does
// not have are somebody else's. With the manifest in the place of what there would be, it tells which fields are not written as the manifest
// writes them: none of them is, or is worth trying.
func Compare(manifest, wanted, found *unstructured.Unstructured) []Difference {
	w := walk{}
	fields, would, is := content(manifest), content(wanted), content(found)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != "apiVersion" && key != "kind" && key != "status" {
			w.value(pointer{key}, fields[key], would[key], is[key])
		}
	}
	return w.found
}

// walk goes through a manifest.
type walk struct{ found []Difference }

func (w *walk) value(at pointer, manifest, wanted, found any) {
	switch manifest := manifest.(type) {
	case nil: // it takes a field away, which is nobody's then
	case map[string]any:
		would, ok := wanted.(map[string]any)
		is, ok2 := found.(map[string]any)
		if !ok || !ok2 {
			w.leaf(at, wanted, found)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(manifest)) {
			w.value(at.with(key), manifest[key], would[key], is[key])
		}
	case []any:
		w.list(at, manifest, wanted, found)
	default:
		w.leaf(at, wanted, found)
	}
}

// list compares the items of a manifest's list: those by which others can be told apart wherever they stand, and others by their position.
func (w *walk) list(at pointer, manifest []any, wanted, found any) {
	would, ok := wanted.([]any)
	is, ok2 := found.([]any)
	named := distinct(manifest)
	if !ok || !ok2 || !named && (len(would) != len(manifest) || len(is) != len(manifest)) {
		w.leaf(at, wanted, found)
		return
	}
	for i, item := range manifest {
		w.value(at.with(strconv.Itoa(i)), item, itemLike(would, item, i, named), itemLike(is, item, i, named))
	}
}

func (w *walk) leaf(at pointer, wanted, found any) {
	if !equality.Semantic.DeepEqual(wanted, found) {
		w.found = append(w.found, Difference{Path: at.String(), Wanted: wanted, Found: found})
	}
}

// identifying are the fields by which the items of lists are told apart. Kinds differ in which of them they use.
var identifying = []string{"name", "mountPath", "devicePath", "containerPort", "port", "protocol", "ip", "uid", "topologyKey", "key"}

// distinct reports whether the items of a list can be told apart by what they are, and not only by where they stand.
func distinct(items []any) bool {
	for i, item := range items {
		fields, is := item.(map[string]any)
		if !is || !slices.ContainsFunc(identifying, func(name string) bool { return fields[name] != nil }) {
			return false
		}
		if slices.ContainsFunc(items[:i], func(other any) bool { return alike(fields, other) }) {
			return false
		}
	}
	return len(items) > 0
}

// alike reports whether an item is the one that a manifest means, by all that identifies the latter.
func alike(manifest map[string]any, item any) bool {
	fields, is := item.(map[string]any)
	return is && !slices.ContainsFunc(identifying, func(name string) bool {
		return manifest[name] != nil && !equality.Semantic.DeepEqual(manifest[name], fields[name])
	})
}

// itemLike is the item of a list that a manifest means, nil if it is not there.
func itemLike(items []any, manifest any, position int, named bool) any {
	if !named {
		if position < len(items) {
			return items[position]
		}
		return nil
	}
	fields, _ := manifest.(map[string]any)
	for _, item := range items {
		if alike(fields, item) {
			return item
		}
	}
	return nil
}

func content(object *unstructured.Unstructured) map[string]any {
	if object == nil {
		return nil
	}
	return object.Object
}
