package grants

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The syncer may act as itself with a note of the user, and as nobody else: who may impersonate more has the rights of all others.
func TestTheSyncerMayImpersonateItselfAlone(t *testing.T) {
	all, err := assemble(audit("0a1b2c3d-4e5f-6789")...)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, piece := range all {
		role := &rbacv1.Role{} // which a ClusterRole looks like, too
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(piece.Object.Object, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				where := role.Namespace + "/" + resource
				for _, name := range rule.ResourceNames {
					where += "/" + name
				}
				for _, verb := range rule.Verbs {
					got[where] += rule.APIGroups[0] + " " + verb
				}
			}
		}
	}
	want := map[string]string{
		"/userextras/manifold.dev/user":                            "authentication.k8s.io impersonate",
		"manifold-system/serviceaccounts/manifold-syncer-0a1b2c3d": " impersonate",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}
