package applications

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/pipecd"
)

func TestDriftThatNobodyActsUpon(t *testing.T) {
	const (
		ignore, heal         = "spec.drift.ignore is not honoured: fields are not compared with what was released yet", "spec.drift.heal is not honoured: no release puts back what was released yet"
		fileIgnore, fileHeal = "driftDetection.ignoreFields is not honoured: fields are not compared with what was released yet", "trigger.onOutOfSync is not honoured: no release puts back what was released yet"
	)
	fields := []v1alpha1.DriftIgnore{{Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}}}
	for name, test := range map[string]struct {
		own, file *v1alpha1.Drift
		want      []string
	}{
		"nothing is asked for":                    {},
		"nothing is asked for in so many words":   {own: &v1alpha1.Drift{}, file: &v1alpha1.Drift{Heal: true}},
		"fields that do not count":                {own: &v1alpha1.Drift{Ignore: fields}, want: []string{ignore}},
		"to put back what was released":           {own: &v1alpha1.Drift{Heal: true}, want: []string{heal}},
		"both":                                    {own: &v1alpha1.Drift{Heal: true, Ignore: fields}, want: []string{ignore, heal}},
		"both, by the file":                       {file: &v1alpha1.Drift{Heal: true, Ignore: fields}, want: []string{fileIgnore, fileHeal}},
		"the application's own before the file's": {own: &v1alpha1.Drift{Heal: true}, file: &v1alpha1.Drift{Ignore: fields}, want: []string{heal}},
	} {
		t.Run(name, func(t *testing.T) {
			app := inline(deployment)
			app.Spec.Drift = test.own
			found := &sources.Found{}
			if test.file != nil {
				found.File = &pipecd.Application{}
				found.File.Spec.Drift = test.file
			}
			plan, err := planOf(app, found)
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
