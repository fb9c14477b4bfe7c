package traffic

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/internal/text"
)

// longestNames bounds what is shown of the names of routes.
const longestNames = 200

// Among returns the names of the routes of a kind among manifests of targets.
func Among(kind schema.GroupKind, manifests map[string][]*unstructured.Unstructured) (names []string) {
	for _, objects := range manifests {
		for _, object := range objects {
			if object.GroupVersionKind().GroupKind() == kind {
				names = append(names, object.GetName())
			}
		}
	}
	return names
}

// Only returns the name that all of the names are. The error says what to do if there is none, or another one as well.
func Only(kind schema.GroupKind, names []string) (string, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch len(names) {
	case 0:
		return "", fmt.Errorf("spec.traffic.name: Required value: there is no %s among the manifests: name one in the namespace of the application", kind)
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("spec.traffic.name: Required value: there are several of kind %s among the manifests: name %s", kind.Kind, text.Line(strings.Join(names, " or "), longestNames))
}
