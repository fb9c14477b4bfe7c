package simulate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decode reads an object of a type, and refuses fields that the type does not have.
func decode(content map[string]any, into object) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, into, true)
	if err == nil || runtime.IsStrictDecodingError(err) {
		return err
	}
	if at, value, found := culprit(content, err, into); found {
		return field.Invalid(at, value, strings.Replace(err.Error(), "unrecognized type: ", "must be of type ", 1))
	}
	return err
}

// culprit finds the value that cannot be read: the first one without which reading gets further. Errors of the converter do not name it.
func culprit(content map[string]any, why error, like object) (at *field.Path, value any, found bool) {
	content = runtime.DeepCopyJSON(content)
	readsOtherwise := func() bool {
		fresh := like.DeepCopyObject()
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, fresh)
		return err == nil || err.Error() != why.Error()
	}
	var search func(path *field.Path, value any, set func(any)) bool
	search = func(path *field.Path, v any, set func(any)) bool {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if search(child(path, key), v[key], func(to any) { v[key] = to }) {
					return true
				}
			}
			if len(v) > 0 {
				return false
			}
		case []any:
			for i := range v {
				if search(path.Index(i), v[i], func(to any) { v[i] = to }) {
					return true
				}
			}
			if len(v) > 0 {
				return false
			}
		}
		set(nil)
		if readsOtherwise() {
			at, value, found = path, v, true
			return true
		}
		set(v)
		return false
	}
	search(nil, content, func(any) {})
	return at, value, found
}

// child is the path of a field, or of a key that is none.
func child(path *field.Path, key string) *field.Path {
	if strings.ContainsAny(key, "./") || path != nil && slices.Contains([]string{"requests", "limits", "labels", "annotations"}, last(path)) {
		return path.Key(key)
	}
	return path.Child(key)
}

func last(path *field.Path) string {
	text := path.String()
	return text[strings.LastIndex(text, ".")+1:]
}
