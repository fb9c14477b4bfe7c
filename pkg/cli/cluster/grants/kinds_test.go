package grants

import (
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseKinds(t *testing.T) {
	for name, test := range map[string]struct {
		values    []string
		want      []schema.GroupResource
		wantError string
	}{
		"none are fine": {},
		"each counts once": {
			values: []string{"widgets.example.com", "*.acme.io", "widgets.example.com", "gateways.gateway.networking.k8s.io"},
			want: []schema.GroupResource{
				{Group: "example.com", Resource: "widgets"}, {Group: "acme.io", Resource: "*"}, {Group: "gateway.networking.k8s.io", Resource: "gateways"},
			},
		},
		"a kind of Kubernetes is refused":        {values: []string{"clusterroles.rbac.authorization.k8s.io"}, wantError: "only kinds of custom resources"},
		"one of a short group is too":            {values: []string{"deployments.apps"}, wantError: "only kinds of custom resources"},
		"a kind without a group is refused":      {values: []string{"secrets"}, wantError: "widgets.example.com"},
		"everything is refused":                  {values: []string{"*"}, wantError: "widgets.example.com"},
		"every group is refused":                 {values: []string{"widgets.*"}, wantError: "widgets.example.com"},
		"the kind's name in place of its plural": {values: []string{"Widget.example.com"}, wantError: "plural"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseKinds(test.values)
			if !reflect.DeepEqual(got, test.want) || !strings.Contains(errorText(err), test.wantError) || (err == nil) != (test.wantError == "") {
				t.Errorf("%v, error %v, want %v, error %q", got, err, test.want, test.wantError)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestKindsAreAddedToThoseThatWereAllowed(t *testing.T) {
	const logical = "0a1b2c3d-4e5f-6789"
	before, err := ForKinds(logical, []schema.GroupResource{{Group: "example.com", Resource: "widgets"}, {Group: "acme.io", Resource: "anvils"}})
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(before[0].Object.Object, role); err != nil {
		t.Fatal(err)
	}
	all := append(KindsIn(role), schema.GroupResource{Group: "example.com", Resource: "gizmos"}, schema.GroupResource{Group: "example.com", Resource: "widgets"})
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"acme.io"}, Resources: []string{"anvils"}, Verbs: verbs},
		{APIGroups: []string{"example.com"}, Resources: []string{"gizmos", "widgets"}, Verbs: verbs},
	}
	if got := policyRules(kindRights(all)); !reflect.DeepEqual(got, want) {
		t.Errorf("rules %v, want %v", got, want)
	}
}
