package bootstrap

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRolesOfDelivery(t *testing.T) {
	const to = "rbac.authorization.k8s.io/aggregate-to-"
	got := map[string]*rbacv1.ClusterRole{}
	for _, role := range deliveryRoles() {
		got[role.Name] = role
	}
	for name, test := range map[string]struct {
		into          []string
		may, mayNever []string
	}{
		"manifold-delivery-view": {
			into: []string{to + "admin", to + "edit", to + "view"}, may: []string{"get applications", "watch releases", "list applicationrevisions", "get releases/log"},
			mayNever: []string{"create pipelines/promote", "create pipelines/pause", "create applications", "create applications/preview", "create releases", "list releaselogparts", "get pluginrecords", "create releases/approve", "create releases/cancel", "update releases/status"},
		},
		"manifold-delivery-edit": {
			into:     []string{to + "admin", to + "edit"},
			may:      []string{"create applications", "create applications/preview", "delete releases", "create releases/cancel", "create releases/retry", "create releases/rollback", "create releases/skip"},
			mayNever: []string{"create pipelines/promote", "create pipelines/pause", "create pipelines/resume", "create releases/approve", "update applications/status", "update releases/status", "create applicationrevisions", "delete applicationrevisions", "update pluginrecords"},
		},
		"manifold-delivery-approve": {
			into: []string{to + "admin"}, may: []string{"create releases/approve", "get releases"},
			mayNever: []string{"create releases", "create releases/skip", "create releases/cancel", "update releases/status", "create pipelines/promote"},
		},
		"manifold-plugins-view": {
			may:      []string{"get plugins", "list plugins", "watch plugins", "get plugins/status"},
			mayNever: []string{"create plugins", "update plugins", "patch plugins", "delete plugins", "deletecollection plugins", "update plugins/status", "patch plugins/status", "list applications"},
		},
		"manifold-delivery-versions": {may: []string{"list workloadversions"}, mayNever: []string{"list applications", "list releases"}},
	} {
		t.Run(name, func(t *testing.T) {
			role := got[name]
			if role == nil {
				t.Fatalf("there is no such role among %q", slices.Sorted(maps.Keys(got)))
			}
			if into := slices.Sorted(maps.Keys(role.Labels)); !slices.Equal(into, test.into) {
				t.Errorf("it is a part of %q, want %q", into, test.into)
			}
			allows := func(what string) bool {
				verb, resource, _ := strings.Cut(what, " ")
				return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Verbs, verb) && slices.Contains(r.Resources, resource) && slices.Contains(r.APIGroups, "delivery.manifold.dev")
				})
			}
			for _, what := range test.may {
				if !allows(what) {
					t.Errorf("it does not allow to %s", what)
				}
			}
			for _, what := range test.mayNever {
				if allows(what) {
					t.Errorf("it allows to %s", what)
				}
			}
		})
	}
}

// Plugins are programs that run on the server's own host.
func TestNoRoleOfANamespaceHasARightToPlugins(t *testing.T) {
	for _, role := range slices.Concat(policyRoles(), deliveryRoles(), pipelineRoles(), []*rbacv1.ClusterRole{metricsRole()}) {
		for _, rule := range role.Rules {
			ours := slices.Contains(rule.APIGroups, "delivery.manifold.dev") || slices.Contains(rule.APIGroups, "*")
			if !ours || !slices.ContainsFunc(rule.Resources, func(of string) bool { return of == "*" || strings.HasPrefix(of, "plugins") }) {
				continue
			}
			if len(role.Labels) > 0 {
				t.Errorf("role %s, which is a part of %q, has a right to plugins: %v", role.Name, slices.Sorted(maps.Keys(role.Labels)), rule)
			}
			if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }) {
				t.Errorf("role %s lets %q of plugins", role.Name, rule.Verbs)
			}
		}
	}
}
