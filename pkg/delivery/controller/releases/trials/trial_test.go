package trials

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
)

// What is in no cluster is applied as it was tried, so that what only a trial is refused for can wait until then.
func TestWhatIsAskedAboutAgainMayBeRefusedInATrial(t *testing.T) {
	for name, answer := range map[string]error{
		"a webhook that bears no dry run":   webhookerrors.NewDryRunUnsupportedErr("policy.example.com"),
		"what refers to what comes with it": apierrors.NewNotFound(rbacv1.Resource("roles"), "reader"),
	} {
		if why, err := verdictOf(answer, false); why != "" || err != nil {
			t.Errorf("%s: refused %q, error %v, want neither", name, why, err)
		}
	}
}
