package identity

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func TestControllersMayDoTheirOwnWorkAlone(t *testing.T) {
	for _, test := range []struct {
		user, verb, group, resource string
		want                        bool
	}{
		{v1alpha1.SummaryUser, "update", "apps", "deployments/status", true},
		{v1alpha1.SummaryUser, "update", "", "services/status", true},
		{v1alpha1.SummaryUser, "update", "networking.k8s.io", "ingresses/status", true},
		{v1alpha1.SummaryUser, "create", "apps", "replicasets", true},
		{v1alpha1.SummaryUser, "update", "apps", "controllerrevisions", true},
		{v1alpha1.SummaryUser, "delete", "", "pods", true},
		{v1alpha1.SummaryUser, "create", "apps", "deployments", false},
		{v1alpha1.SummaryUser, "update", "apps", "deployments", false},
		{v1alpha1.SummaryUser, "update", "apps", "deployments/scale", false},
		{v1alpha1.SummaryUser, "delete", "apps", "deployments", false},
		{v1alpha1.SummaryUser, "get", "", "secrets", false},
		{v1alpha1.SummaryUser, "create", "", "pods", false},
		{v1alpha1.SummaryUser, "create", "", "pods/exec", false},
		{v1alpha1.SummaryUser, "patch", "", "services", false},
		{v1alpha1.SummaryUser, "update", "manifold.dev", "clusters/status", false},
		{v1alpha1.SummaryUser, "create", "rbac.authorization.k8s.io", "clusterrolebindings", false},
		{v1alpha1.PlacementUser, "patch", "apps", "deployments", true},
		{v1alpha1.PlacementUser, "patch", "", "pods", true},
		{v1alpha1.PlacementUser, "update", "manifold.dev", "placementpolicies/status", true},
		{v1alpha1.PlacementUser, "update", "manifold.dev", "placementpolicies", false},
		{v1alpha1.PlacementUser, "update", "apps", "deployments/status", false},
		{v1alpha1.PlacementUser, "delete", "", "pods", false},
		{v1alpha1.PlacementUser, "list", "", "secrets", false},
		{v1alpha1.ControllerUser + ":another", "update", "apps", "deployments/status", false},
		{"jane", "update", "apps", "deployments/status", false},
	} {
		resource, subresource, _ := strings.Cut(test.resource, "/")
		got, _, err := controllerAuthorizer{}.Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: test.user}, Verb: test.verb, APIGroup: test.group, Resource: resource, Subresource: subresource,
			Namespace: "shop", Name: "web", ResourceRequest: true,
		})
		if err != nil || (got == authorizer.DecisionAllow) != test.want || got == authorizer.DecisionDeny {
			t.Errorf("%s may %s %s of %q: %v, %v; want %t", test.user, test.verb, test.resource, test.group, got, err, test.want)
		}
	}
}

// A kind that comes to be summarised, or placed, needs a right.
func TestControllersMayWriteEveryKind(t *testing.T) {
	allowed := func(name, verb, group, resource, subresource string) bool {
		got, _, err := controllerAuthorizer{}.Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name}, Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource, ResourceRequest: true,
		})
		return err == nil && got == authorizer.DecisionAllow
	}
	for _, kind := range summary.Kinds() {
		if r := kind.Resource; !allowed(v1alpha1.SummaryUser, "update", r.Group, r.Resource, "status") {
			t.Errorf("the statuses of %s cannot be written", r.Resource)
		}
		if r := kind.Resource; kind.Breakdown && !allowed(v1alpha1.SummaryUser, "patch", r.Group, r.Resource, "") {
			t.Errorf("%s cannot be let go", r.Resource)
		}
	}
	for _, kind := range projection.Workloads() {
		if r := kind.Resource; !allowed(v1alpha1.PlacementUser, "patch", r.Group, r.Resource, "") {
			t.Errorf("no decision can be written on %s", r.Resource)
		}
	}
}

func TestControllersAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]bool{
		v1alpha1.ControllerUser: true, v1alpha1.SummaryUser: true, v1alpha1.PlacementUser: true,
		"system:manifold:controllers": false, "system:manifold:cluster:east": false, "jane": false, "": false,
	} {
		if got := IsController(&user.DefaultInfo{Name: name}); got != want {
			t.Errorf("%q is Manifold itself: %t, want %t", name, got, want)
		}
	}
	ids, _ := newIdentities(t)
	for _, config := range []string{ids.Summary().BearerToken, ids.Placement().BearerToken} {
		response, ok, err := ids.AuthenticateToken(t.Context(), config)
		if err != nil || !ok {
			t.Fatalf("it is not known: %v", err)
		}
		for _, group := range response.User.GetGroups() {
			if group == user.SystemPrivilegedGroup {
				t.Errorf("%s may do anything", response.User.GetName())
			}
		}
	}
}
