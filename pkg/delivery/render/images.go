package render

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/internal/imageref"
)

// Image is what a container runs.
type Image struct {
	Object    ObjectName
	Container string
	// Name is the image without its tag and digest, which may be empty.
	Name, Tag, Digest string
}

// imagesOf returns the images of all containers, of custom kinds too: a field named as those of pods, with a list of what has an image.
func imagesOf(objects []*unstructured.Unstructured) []Image {
	var out []Image
	for _, object := range objects {
		name := NameOf(object)
		eachContainer(object.Object, func(container, image string) {
			ref := imageref.Parse(image)
			out = append(out, Image{Object: name, Container: container, Name: ref.Name, Tag: ref.Tag, Digest: ref.Digest})
		})
	}
	slices.SortFunc(out, func(a, b Image) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Digest, b.Digest))
	})
	return slices.Compact(out)
}

func eachContainer(value any, do func(container, image string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if key == "containers" || key == "initContainers" {
				containers(inner, do)
			}
			eachContainer(inner, do)
		}
	case []any:
		for _, inner := range value {
			eachContainer(inner, do)
		}
	}
}

func containers(list any, do func(container, image string)) {
	items, _ := list.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		if image, _ := fields["image"].(string); image != "" {
			do(name, image)
		}
	}
}
