package cluster

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// tellingName names the roles, and their bindings, that let the syncer tell the cluster's audit whose requests it makes.
func tellingName(logical types.UID) string { return syncerName(logical) + "-audit" }

// tellingRights are these rights.
func tellingRights(logical types.UID) []Right {
	return rights.Telling(manifoldv1alpha1.SystemNamespace, syncerName(logical))
}

// tellingPieces are the roles with these rights, and their bindings. What is about the syncer's own ServiceAccount is granted in its namespace
// alone.
func tellingPieces(logical types.UID) ([]piece, error) {
	meta := metav1.ObjectMeta{Name: tellingName(logical), Labels: madeByManifold()}
	inSystem := *meta.DeepCopy()
	inSystem.Namespace = manifoldv1alpha1.SystemNamespace
	var everywhere, within []Right
	for _, right := range tellingRights(logical) {
		if right.Namespace == "" {
			everywhere = append(everywhere, right)
		} else {
			within = append(within, right)
		}
	}
	return assemble(meta.Name, []row{
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRole", resource: "clusterroles", why: "Lets it tell the cluster's audit whose requests it makes: it acts as itself, with a name beside.",
			object: &rbacv1.ClusterRole{ObjectMeta: meta, Rules: policyRules(everywhere)}, rights: everywhere,
		},
		{
			version: rbacv1.SchemeGroupVersion, kind: "Role", resource: "roles", why: "The same: as itself, and nobody else.",
			object: &rbacv1.Role{ObjectMeta: inSystem, Rules: policyRules(within)}, rights: within,
		},
		{version: rbacv1.SchemeGroupVersion, kind: "ClusterRoleBinding", resource: "clusterrolebindings", why: "Gives it that.", object: &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: syncerAlone(logical), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		}},
		{version: rbacv1.SchemeGroupVersion, kind: "RoleBinding", resource: "rolebindings", why: "Gives it that.", object: &rbacv1.RoleBinding{
			ObjectMeta: inSystem, Subjects: syncerAlone(logical), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		}},
	})
}
