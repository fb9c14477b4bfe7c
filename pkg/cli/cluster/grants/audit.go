package grants

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// auditName names the roles, and their bindings, that let the syncer tell the cluster's audit whose requests it makes.
func auditName(logical types.UID) string { return Name(logical) + "-audit" }

// auditRights are these rights.
func auditRights(logical types.UID) []rights.Right {
	return rights.Telling(manifoldv1alpha1.SystemNamespace, Name(logical))
}

// audit has the roles with these rights, and their bindings. What is about the syncer's own ServiceAccount is granted in its namespace alone.
func audit(logical types.UID) []row {
	meta := metav1.ObjectMeta{Name: auditName(logical), Labels: Labels()}
	inSystem := *meta.DeepCopy()
	inSystem.Namespace = manifoldv1alpha1.SystemNamespace
	var everywhere, within []rights.Right
	for _, right := range auditRights(logical) {
		if right.Namespace == "" {
			everywhere = append(everywhere, right)
		} else {
			within = append(within, right)
		}
	}
	return []row{
		clusterRole(meta, everywhere, "Lets it tell the cluster's audit whose requests it makes: it acts as itself, with a name beside."),
		role(inSystem, within, "The same: as itself, and nobody else."),
		clusterRoleBinding(meta, logical),
		roleBinding(inSystem, logical),
	}
}
