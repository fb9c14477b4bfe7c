package applications

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
)

func TestDriftThatNobodyActsUpon(t *testing.T) {
	const theirs = "spec.drift.heal is not honoured: what spec.source.selector selects is for those to put back who apply it"
	fields := []v1alpha1.DriftIgnore{{Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}}}
	for name, test := range map[string]struct {
		own      *v1alpha1.Drift
		selected bool
		want     []string
	}{
		"nothing is asked for":                    {},
		"what is our own is put back":             {own: &v1alpha1.Drift{Heal: true, Ignore: fields}},
		"what users apply is not":                 {own: &v1alpha1.Drift{Heal: true}, selected: true, want: []string{theirs}},
		"of what users apply fields are left out": {own: &v1alpha1.Drift{Ignore: fields}, selected: true},
	} {
		t.Run(name, func(t *testing.T) {
			app := inline(deployment)
			app.Spec.Drift = test.own
			if test.selected {
				app.Spec.Source = v1alpha1.Source{Selector: &v1alpha1.ObjectSelector{}}
			}
			plan, err := planOf(app, &sources.Found{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(plan.undone, test.want) {
				t.Errorf("not honoured is %q, want %q", plan.undone, test.want)
			}
			if honoured := plan.honoured().Status == metav1.ConditionTrue; honoured != (len(test.want) == 0) {
				t.Errorf("condition Honoured is True: %t", honoured)
			}
		})
	}
}
