package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// deliveryRoles let those who may edit or view a namespace do so with what is delivered to it. To approve is for admins of the namespace and for
// who is given the role alone: who writes a version and who agrees to it may be different people. Nobody but Manifold makes revisions or writes
// statuses. Plugins run on the server's own host and are configured with credentials: no role for namespaces has a right to them, and that to see them is
// for who is given it by name.
func deliveryRoles() []*rbacv1.ClusterRole {
	rule := func(verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{delivery.GroupName}, Resources: resources, Verbs: verbs}
	}
	post := []string{"create"}
	return []*rbacv1.ClusterRole{
		aggregated(role("manifold-delivery-edit",
			rule(change, "applications", "releases"),
			rule(post, "applications/preview", "releases/cancel", "releases/retry", "releases/rollback", "releases/skip"),
		), "edit", "admin"),
		aggregated(role("manifold-delivery-view",
			rule(look, "applications", "applicationrevisions", "releases"),
			rule([]string{"get"}, "applications/status", "releases/log", "releases/status"),
		), "view", "edit", "admin"),
		aggregated(role("manifold-delivery-approve",
			rule(look, "applications", "applicationrevisions", "releases"),
			rule(post, "releases/approve"),
		), "admin"),
		role("manifold-plugins-view",
			rule(look, delivery.ResourcePlugins),
			rule([]string{"get"}, delivery.ResourcePlugins+"/status"),
		),
		role(delivery.VersionsRole, rule([]string{"list"}, delivery.ResourceVersions)),
	}
}

// versionsBinding lets everybody who has logged in ask for versions, of which they are told those that they may list.
func versionsBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: delivery.VersionsRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: delivery.VersionsRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: user.AllAuthenticated}},
	}
}
