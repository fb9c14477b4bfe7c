package metadata

import (
	"slices"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// What admission leaves to storage, storage has to see to.
func TestStorageKeepsAllThatManifoldAloneWrites(t *testing.T) {
	want := slices.DeleteFunc(v1alpha1.Keys(), func(key string) bool {
		return !v1alpha1.KeptAnnotation(key) || key == v1alpha1.AnnotationAwaits // which admission decides anew with every write of what an Application may select
	})
	if got := slices.Sorted(slices.Values(ManagedAnnotations)); !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
}
