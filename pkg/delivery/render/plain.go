package render

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// parsed is an object and where it was found.
type parsed struct {
	object *unstructured.Unstructured
	from   string
}

// plain parses manifests as they are.
func plain(bundle *Bundle, limits Limits) (objects []parsed, warnings []string, err error) {
	for name, why := range bundle.Unread {
		return nil, nil, fmt.Errorf("%w: file %q cannot be read: %s", ErrInvalid, name, why)
	}
	for _, name := range slices.Sorted(maps.Keys(bundle.Files)) {
		found, left, err := parse(name, bundle.Files[name], limits.Objects-len(objects))
		if err != nil {
			return nil, nil, err
		}
		objects, warnings = append(objects, found...), append(warnings, left...)
	}
	return objects, warnings, nil
}

// parse returns the objects in a file of YAML or JSON, at most most, and warnings of what it leaves out.
func parse(name string, content []byte, most int) (objects []parsed, warnings []string, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for i := 1; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, warnings, nil
		}
		from := fmt.Sprintf("document %d of %q", i, name)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrInvalid, from, err)
		}
		object, err := decode(document)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrInvalid, from, err)
		case object == nil:
			continue
		case foreign(object.GroupVersionKind()):
			warnings = append(warnings, fmt.Sprintf("%s is left out: %s is configuration of a tool and no object of Kubernetes", from, object.GetKind()))
			continue
		}
		flat, err := flatten(object, from, mostNested)
		if err != nil {
			return nil, nil, err
		}
		if objects = append(objects, flat...); len(objects) > most {
			return nil, nil, fmt.Errorf("%w: %q makes it too many objects", ErrTooLarge, name)
		}
	}
}

// foreign reports whether a document is configuration that lies beside manifests.
func foreign(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "pipecd.dev" || gvk.Group == "kustomize.config.k8s.io"
}

// decode returns the object in a document, or nil if there is nothing in it. What is not a Kubernetes object is an error.
func decode(document []byte) (*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(asJSON), []byte("null")) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asJSON); err != nil {
		return nil, fmt.Errorf("it is no object of Kubernetes, which has an apiVersion and a kind: %w", err)
	}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, errors.New("it is no object of Kubernetes, which has an apiVersion and a kind")
	}
	return object, nil
}

// mostNested bounds how deep lists lie in lists.
const mostNested = 5

// flatten returns the items of a list, and an object as it is. It is where all objects come by, however they are made.
func flatten(object *unstructured.Unstructured, from string, depth int) ([]parsed, error) {
	if !strings.HasSuffix(object.GetKind(), "List") || !object.IsList() {
		if err := checkTexts(object); err != nil {
			return nil, fmt.Errorf("%w: %s (%s): %w", ErrInvalid, NameOf(object), from, err)
		}
		return []parsed{{object, from}}, nil
	}
	if depth == 0 {
		return nil, fmt.Errorf("%w: %s: lists lie in lists too deep", ErrInvalid, from)
	}
	items, _, err := unstructured.NestedSlice(object.Object, "items")
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, from, err)
	}
	var out []parsed
	for i, item := range items {
		at := fmt.Sprintf("item %d of %s", i+1, from)
		content, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%w: %s: it is no object of Kubernetes, which has an apiVersion and a kind", ErrInvalid, at)
		}
		inner := &unstructured.Unstructured{Object: content}
		if inner.GetAPIVersion() == "" || inner.GetKind() == "" {
			return nil, fmt.Errorf("%w: %s: it is no object of Kubernetes, which has an apiVersion and a kind", ErrInvalid, at)
		}
		flat, err := flatten(inner, at, depth-1)
		if err != nil {
			return nil, err
		}
		out = append(out, flat...)
	}
	return out, nil
}
