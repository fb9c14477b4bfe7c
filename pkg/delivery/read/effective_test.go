package read

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestWhoSaysWhenToRollBackComesFirst(t *testing.T) {
	for name, test := range map[string]struct{ own, file, want v1alpha1.RollbackWhen }{
		"nobody":                             {},
		"the file alone":                     {file: v1alpha1.RollbackNever, want: v1alpha1.RollbackNever},
		"the application, be it the default": {own: v1alpha1.RollbackAny, file: v1alpha1.RollbackNever, want: v1alpha1.RollbackAny},
	} {
		t.Run(name, func(t *testing.T) {
			app := v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{Rollback: v1alpha1.Rollback{When: test.own}}}
			v1alpha1.SetObjectDefaults_Application(&app)
			if got := With(app.Spec, &v1alpha1.RevisionDelivery{Rollback: v1alpha1.Rollback{When: test.file}}).Rollback.When; got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}
