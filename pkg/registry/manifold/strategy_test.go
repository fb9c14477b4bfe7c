package manifold

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// changeSpec makes any change to an object's spec.
func changeSpec(object runtime.Object) {
	switch object := object.(type) {
	case *v1alpha1.Cluster:
		object.Spec.Unschedulable = !object.Spec.Unschedulable
	case *v1alpha1.PlacementPolicy:
		object.Spec.Priority++
	case *v1alpha1.ClusterPlacementPolicy:
		object.Spec.Priority++
	}
}

func generation(t *testing.T, object runtime.Object) int64 {
	t.Helper()
	accessor, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	return accessor.GetGeneration()
}

func TestEveryKindCountsGenerationsOfItsSpec(t *testing.T) {
	for _, kind := range kinds(api.Scheme(t)) {
		t.Run(kind.Plural, func(t *testing.T) {
			object := kind.Object()
			kind.Strategy.PrepareForCreate(t.Context(), object)
			if got := generation(t, object); got != 1 {
				t.Errorf("a new object has generation %d, want 1", got)
			}

			labelled := object.DeepCopyObject()
			accessor, err := meta.Accessor(labelled)
			if err != nil {
				t.Fatal(err)
			}
			accessor.SetLabels(map[string]string{"region": "eu"})
			kind.Strategy.PrepareForUpdate(t.Context(), labelled, object)
			if got := generation(t, labelled); got != 1 {
				t.Errorf("a new label led to generation %d, want 1", got)
			}

			changed := labelled.DeepCopyObject()
			changeSpec(changed)
			kind.Strategy.PrepareForUpdate(t.Context(), changed, labelled)
			if got := generation(t, changed); got != 2 {
				t.Errorf("a new spec led to generation %d, want 2", got)
			}
		})
	}
}

func TestDropDefaultMeasure(t *testing.T) {
	divide := func(by v1alpha1.DivisionBy) *v1alpha1.Division {
		return &v1alpha1.Division{Type: v1alpha1.Divide, By: by}
	}
	duplicate := func(by v1alpha1.DivisionBy) *v1alpha1.Division {
		return &v1alpha1.Division{Type: v1alpha1.Duplicate, By: by}
	}
	for name, test := range map[string]struct {
		before, division *v1alpha1.Division
		want             v1alpha1.DivisionBy
	}{
		"the default goes with the type that it was for": {before: divide(v1alpha1.ByCapacity), division: duplicate(v1alpha1.ByCapacity)},
		"a measure that was chosen stays, to be refused": {
			before: divide(v1alpha1.ByEven), division: duplicate(v1alpha1.ByEven), want: v1alpha1.ByEven,
		},
		"a measure that is new stays, to be refused": {
			before: divide(v1alpha1.ByEven), division: duplicate(v1alpha1.ByCapacity), want: v1alpha1.ByCapacity,
		},
		"a policy that never divided gets no help": {division: duplicate(v1alpha1.ByCapacity), want: v1alpha1.ByCapacity},
		"Divide keeps its measure": {
			before: divide(v1alpha1.ByCapacity), division: divide(v1alpha1.ByCapacity), want: v1alpha1.ByCapacity,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dropDefaultMeasure(test.division, test.before)
			if got := test.division.By; got != test.want {
				t.Errorf("by = %q, want %q", got, test.want)
			}
		})
	}
	dropDefaultMeasure(nil, divide(v1alpha1.ByCapacity))
}
