package compare

import (
	"fmt"
	"maps"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/cmd/diff"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/internal/text"
)

// around is how many lines are shown around each change.
const around = 3

// Unified returns the difference between two states of an object as a unified diff with these titles, "" if there is none. Either may be nil.
// Values of Secrets are masked, and what the server keeps by itself is left out.
func Unified(from, to *unstructured.Unstructured, fromTitle, toTitle string) (string, error) {
	from, to, err := masked(cleaned(from), cleaned(to))
	if err != nil {
		return "", err
	}
	before, err := written(from)
	if err != nil {
		return "", err
	}
	after, err := written(to)
	if err != nil {
		return "", err
	}
	if before == after {
		return "", nil
	}
	out, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(before), B: lines(after), FromFile: fromTitle, ToFile: toTitle, Context: around,
	})
	if err != nil {
		return "", fmt.Errorf("compare %s with %s: %w", fromTitle, toTitle, err)
	}
	return out, nil
}

// lines are those of a text, each with its end.
func lines(of string) []string {
	if of == "" {
		return nil
	}
	return difflib.SplitLines(strings.TrimSuffix(of, "\n"))
}

// ours is what the names of labels and annotations end in, before the slash, that Manifold keeps.
const ours = "manifold.dev"

// cleaned is an object without what nobody writes into manifests: what the server keeps, its status, and the marks of others.
func cleaned(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	out := object.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "ownerReferences", "finalizers", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	unstructured.RemoveNestedField(out.Object, "metadata", "namespace")
	labels, annotations := out.GetLabels(), out.GetAnnotations()
	maps.DeleteFunc(labels, isOurs)
	maps.DeleteFunc(annotations, isOurs)
	delete(annotations, corev1.LastAppliedConfigAnnotation) // it holds the values of a Secret, too
	delete(annotations, "deployment.kubernetes.io/revision")
	set(out, labels, "labels")
	set(out, annotations, "annotations")
	return out
}

func isOurs(key, _ string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && (domain == ours || strings.HasSuffix(domain, "."+ours))
}

// set writes labels or annotations, or removes them if none are left.
func set(object *unstructured.Unstructured, values map[string]string, field string) {
	if len(values) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
		return
	}
	_ = unstructured.SetNestedStringMap(object.Object, values, "metadata", field) // metadata is an object
}

// masked hides the values of Secrets as kubectl does: what has changed can be told from what has not.
func masked(from, to *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured, error) {
	if !isSecret(from) && !isSecret(to) {
		return from, to, nil
	}
	masker, err := diff.NewMasker(object(from), object(to))
	if err != nil {
		return nil, nil, fmt.Errorf("mask a Secret: %w", err)
	}
	return plain(masker.From()), plain(masker.To()), nil
}

func isSecret(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	gvk := object.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Secret"
}

// object is nil as an interface if there is none.
func object(of *unstructured.Unstructured) runtime.Object {
	if of == nil {
		return nil
	}
	return of
}

func plain(of runtime.Object) *unstructured.Unstructured {
	out, _ := of.(*unstructured.Unstructured)
	return out
}

// written is an object as YAML that a terminal can be shown.
func written(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	out, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("write %s as YAML: %w", Title(object), err)
	}
	return text.Escape(string(out)), nil
}
