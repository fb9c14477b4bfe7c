package validation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// check compares refusals with what they should begin with.
func check(t *testing.T, got field.ErrorList, want []string) {
	t.Helper()
	var texts []string
	for _, err := range got {
		texts = append(texts, err.Error())
	}
	if !slices.EqualFunc(texts, want, strings.HasPrefix) {
		t.Errorf("refusals:\n  %s\nwant these, or longer ones:\n  %s", strings.Join(texts, "\n  "), strings.Join(want, "\n  "))
	}
}

// application is the one that a spec in YAML makes, with the defaults. A source is put in where there is none.
func application(t *testing.T, spec string) *v1alpha1.Application {
	t.Helper()
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "1"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &app.Spec); err != nil {
		t.Fatal(err)
	}
	if app.Spec.Source == (v1alpha1.Source{}) {
		app.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example/shop.git"}
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.Default(app)
	return app
}

type specs map[string]struct {
	spec string
	want []string
}

// checkSpecs runs specs through creation and update.
func checkSpecs(t *testing.T, tests specs) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			app := application(t, test.spec)
			check(t, ValidateApplication(app), test.want)
			check(t, ValidateApplicationUpdate(app, application(t, "")), test.want)
		})
	}
}
