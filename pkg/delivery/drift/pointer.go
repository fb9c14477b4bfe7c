package drift

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// pointer leads to a field, key by key (RFC 6901).
type pointer []string

func (p pointer) with(key string) pointer { return append(slices.Clone(p), key) }

// String is the pointer as it is written.
func (p pointer) String() string {
	out := ""
	for _, key := range p {
		out += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	}
	return out
}

func parse(text string) pointer {
	var out pointer
	for _, key := range strings.Split(strings.TrimPrefix(text, "/"), "/") {
		out = append(out, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	return out
}

// Without returns a manifest without the fields that are not compared, and without what is empty by that.
func Without(manifest *unstructured.Unstructured, pointers []string) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	for _, text := range pointers {
		remove(out.Object, parse(text))
	}
	return out
}

// Keeping returns a manifest that leaves the fields alone which are not compared: applied, it has what is found of them.
func Keeping(manifest, found *unstructured.Unstructured, pointers []string) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	for _, text := range pointers {
		p := parse(text)
		if value, there := follow(manifest.Object, content(found), p); there {
			put(out.Object, p, runtime.DeepCopyJSONValue(value))
			continue
		}
		remove(out.Object, p)
	}
	compact(out.Object)
	return out
}

// compact takes the items out of lists that were removed.
func compact(value any) any {
	switch in := value.(type) {
	case map[string]any:
		for key, next := range in {
			in[key] = compact(next)
		}
	case []any:
		in = slices.DeleteFunc(in, func(item any) bool { return item == nil })
		for i := range in {
			in[i] = compact(in[i])
		}
		return in
	}
	return value
}

// remove takes a field out of a value, and what is empty by that. It reports whether nothing is left of the value. Items of lists stay, since
// others are found by their position.
func remove(value any, p pointer) (empty bool) {
	switch in := value.(type) {
	case map[string]any:
		next, there := in[p[0]]
		if there && (len(p) == 1 || remove(next, p[1:])) {
			delete(in, p[0])
			return len(in) == 0
		}
	case []any:
		if i, err := strconv.Atoi(p[0]); err == nil && i >= 0 && i < len(in) {
			if len(p) == 1 {
				in[i] = nil
			} else if remove(in[i], p[1:]) {
				in[i] = nil
			}
		}
	}
	return false
}

// put sets a field that a manifest has. What it does not have, it is not given.
func put(value any, p pointer, to any) {
	switch in := value.(type) {
	case map[string]any:
		switch next, there := in[p[0]]; {
		case there && len(p) == 1:
			in[p[0]] = to
		case there:
			put(next, p[1:], to)
		}
	case []any:
		if i, err := strconv.Atoi(p[0]); err == nil && i >= 0 && i < len(in) {
			if len(p) == 1 {
				in[i] = to
				return
			}
			put(in[i], p[1:], to)
		}
	}
}

// follow is what is found of a manifest's field.
func follow(manifest, found any, p pointer) (value any, there bool) {
	if len(p) == 0 {
		return found, found != nil
	}
	switch in := manifest.(type) {
	case map[string]any:
		is, _ := found.(map[string]any)
		return follow(in[p[0]], is[p[0]], p[1:])
	case []any:
		is, _ := found.([]any)
		i, err := strconv.Atoi(p[0])
		if err != nil || i < 0 || i >= len(in) {
			return nil, false
		}
		return follow(in[i], itemLike(is, in[i], i, distinct(in)), p[1:])
	}
	return nil, false
}

// Stored returns a manifest as the server stores it where it says the same in two ways: what a Secret has as plain text is data like any other.
func Stored(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	plain, has, _ := unstructured.NestedStringMap(manifest.Object, "stringData")
	if !has || !isSecret(manifest.GroupVersionKind().GroupKind()) {
		return manifest
	}
	out := manifest.DeepCopy()
	data, _, _ := unstructured.NestedMap(out.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	out.Object["data"] = data
	delete(out.Object, "stringData")
	return out
}
