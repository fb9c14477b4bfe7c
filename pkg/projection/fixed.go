package projection

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// fixed are the fields of an object that somebody set. What an API server fills in by itself, such as an address that it allocates, is
// none of them: fields are noted as managed before that happens, and later only by whoever changes their value.
type fixed struct{ sets []*fieldpath.Set }

func fixedFields(in metav1.Object) fixed {
	var out fixed
	for _, entry := range in.GetManagedFields() {
		if entry.Subresource != "" || entry.Manager == v1alpha1.FieldManager || entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err == nil {
			out.sets = append(out.sets, set)
		}
	}
	return out
}

// has reports whether somebody set the field.
func (f fixed) has(path ...any) bool {
	want := fieldpath.MakePathOrDie(path...)
	for _, set := range f.sets {
		if set.Has(want) {
			return true
		}
	}
	return false
}
