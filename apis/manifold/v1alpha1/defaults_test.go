package v1alpha1

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestSchemeDefaultsDivision(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		division Division
		want     DivisionBy
	}{
		"Divide goes by capacity":             {division: Division{Type: Divide}, want: ByCapacity},
		"Divide keeps what it was told":       {division: Division{Type: Divide, By: ByEven}, want: ByEven},
		"Duplicate measures nothing":          {division: Division{Type: Duplicate}, want: ""},
		"an unknown type is left to refusal":  {division: Division{Type: "Halve"}, want: ""},
		"a type that is missing gets nothing": {division: Division{}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := PlacementPolicySpec{Division: test.division.DeepCopy()}
			policy := &PlacementPolicy{Spec: spec}
			scheme.Default(policy)
			if got := policy.Spec.Division.By; got != test.want {
				t.Errorf("PlacementPolicy: by = %q, want %q", got, test.want)
			}
			everywhere := &ClusterPlacementPolicy{Spec: ClusterPlacementPolicySpec{
				PlacementPolicySpec: PlacementPolicySpec{Division: test.division.DeepCopy()},
			}}
			scheme.Default(everywhere)
			if got := everywhere.Spec.Division.By; got != test.want {
				t.Errorf("ClusterPlacementPolicy: by = %q, want %q", got, test.want)
			}
		})
	}
}
