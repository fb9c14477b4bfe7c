package trials

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// mutated says why clusters may not hold an object as a revision has it: they would run pods that admission makes otherwise. It is "" where
// admission leaves the pods as they are.
func (t Trial) mutated(object wanted.Object, stored objects.Trial) (why string, err error) {
	if stored.Admitted == nil || !scheme.Scheme.Recognizes(object.Manifest.GroupVersionKind()) {
		return "", nil
	}
	manifest, err := completed(object.Manifest, t.Complete)
	if err != nil {
		return "", fmt.Errorf("%s: %w", object.Key, err)
	}
	admitted, err := completed(stored.Admitted, t.Complete)
	if err != nil {
		return "", fmt.Errorf("%s as it is admitted: %w", object.Key, err)
	}
	present, err := contentNow(stored.Present)
	if err != nil {
		return "", fmt.Errorf("%s as it is there: %w", object.Key, err)
	}
	fields := drift.Fields(object.Manifest.GroupVersionKind().GroupKind(), drift.Admitted(manifest, admitted, present), nil)
	if len(fields) == 0 {
		return "", nil
	}
	told := make([]string, 0, mostRefusals)
	for _, field := range fields[:min(len(fields), mostRefusals)] {
		if field.Wanted == "" {
			told = append(told, fmt.Sprintf("takes %s away", field.Path))
			continue
		}
		told = append(told, fmt.Sprintf("sets %s to %s", field.Path, field.Wanted))
	}
	return fmt.Sprintf("%s: admission in the logical cluster %s; clusters hold what the revision says, so have the manifest say it",
		object.Key, strings.Join(told, ", ")), nil
}

// completed returns an object of a built-in kind with the defaults that the server gives it.
func completed(object *unstructured.Unstructured, complete func(runtime.Object)) (*unstructured.Unstructured, error) {
	typed, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, err
	}
	if complete != nil {
		complete(typed)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return &unstructured.Unstructured{Object: content}, err
}

// contentNow is the content of what is there, nil if there is nothing.
func contentNow(present metav1.Object) (*unstructured.Unstructured, error) {
	if present == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(present)
	return &unstructured.Unstructured{Object: content}, err
}
