package admission

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// held warns who changes an object that clusters hold at a revision: it is stored, and reaches no cluster before a release. A dry run warns, too.
type held struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &held{}

// Validate implements admission.ValidationInterface. It comes when the object is what would be stored, so a change that is taken back is none.
func (*held) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if isManifold(a.GetUserInfo()) || a.GetSubresource() != "" || a.GetOperation() != admission.Update {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil // what has no metadata has no decision
	}
	annotation := obj.GetAnnotations()[v1alpha1.AnnotationPlacement]
	if !strings.Contains(annotation, `"revision"`) {
		return nil
	}
	decision, err := placement.ParseDecision(annotation)
	if err != nil {
		return nil
	}
	if at := decision.HeldAt(); at != "" && !sameContent(a.GetObject(), a.GetOldObject()) {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q is %s until a Release lets it go", a.GetKind().Kind, a.GetName(), at))
	}
	return nil
}

// sameContent reports whether two versions of an object are the same but for what clusters get without a release: their metadata, status and number
// of replicas.
func sameContent(a, b runtime.Object) bool {
	if a == nil || b == nil {
		return true
	}
	return equality.Semantic.DeepEqual(contentOf(a), contentOf(b))
}

func contentOf(in runtime.Object) any {
	if custom, ok := in.(*unstructured.Unstructured); ok {
		out := maps.Clone(custom.Object)
		delete(out, "metadata")
		delete(out, "status")
		return out
	}
	value := reflect.Indirect(reflect.ValueOf(in))
	out := reflect.New(value.Type()).Elem()
	out.Set(value)
	for _, path := range [][]string{{"ObjectMeta"}, {"Status"}, {"Spec", "Replicas"}} {
		leaveOut(out, path)
	}
	return out.Interface()
}

// leaveOut sets a field to its zero value, if there is one at the path.
func leaveOut(in reflect.Value, path []string) {
	for _, name := range path {
		if in.Kind() != reflect.Struct {
			return
		}
		in = in.FieldByName(name)
	}
	if in.CanSet() {
		in.SetZero()
	}
}
