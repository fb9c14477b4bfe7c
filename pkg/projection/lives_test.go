package projection

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhatSomebodyHoldsLivesOn(t *testing.T) {
	const theirs = "example.com/x"
	type lives struct{ workload, dependent bool }
	for name, test := range map[string]struct {
		finalizers  []string
		annotations map[string]string
		want        lives
	}{
		"nobody holds it":                          {nil, nil, lives{false, false}},
		"we alone do":                              {[]string{v1alpha1.FinalizerProjection}, nil, lives{false, false}},
		"somebody does":                            {[]string{theirs}, nil, lives{true, true}},
		"somebody beside us does":                  {[]string{v1alpha1.FinalizerProjection, theirs}, nil, lives{true, true}},
		"what it owns goes first":                  {[]string{theirs, "foregroundDeletion"}, nil, lives{false, true}},
		"what it owns is left behind":              {[]string{theirs, "orphan"}, nil, lives{false, true}},
		"what it owned is left behind":             {[]string{theirs}, map[string]string{v1alpha1.AnnotationOrphan: "true"}, lives{false, true}},
		"only the collector has something to do":   {[]string{"foregroundDeletion"}, nil, lives{false, false}},
		"pods use a claim, which the cluster sees": {[]string{"kubernetes.io/pvc-protection"}, nil, lives{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, k := range Kinds() {
				in := k.New()
				in.SetFinalizers(test.finalizers)
				in.SetAnnotations(test.annotations)
				if !k.Lives(in) || k.Lingers(in) {
					t.Errorf("a %s that nobody deletes does not live, or lingers", k.GVK.Kind)
				}
				in.SetDeletionTimestamp(&metav1.Time{})
				want := test.want.dependent
				if k.Workload {
					want = test.want.workload
				}
				if slices.Contains([]string{"Pod", "Namespace"}, k.GVK.Kind) {
					want = false // kubelets end pods, and a namespace is emptied, whoever holds them
				}
				if got := k.Lives(in); got != want {
					t.Errorf("%s lives: %t, want %t", k.GVK.Kind, got, want)
				}
				if got := k.Lingers(in); got != (want && k.Workload) {
					t.Errorf("%s lingers: %t", k.GVK.Kind, got)
				}
			}
		})
	}
}

func TestHeldByNamesOthersAlone(t *testing.T) {
	in := &metav1.ObjectMeta{Finalizers: []string{"orphan", "example.com/x", v1alpha1.FinalizerProjection, "example.com/y"}}
	if got := HeldBy(in); got != nil {
		t.Errorf("an object that nobody deletes is held by %q", got)
	}
	in.DeletionTimestamp = &metav1.Time{}
	if got, want := HeldBy(in), []string{"example.com/x", "example.com/y"}; !slices.Equal(got, want) {
		t.Errorf("held by %q, want %q", got, want)
	}
	if len(in.Finalizers) != 4 {
		t.Errorf("the object was changed: %q", in.Finalizers)
	}
}
