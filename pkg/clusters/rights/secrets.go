package rights

import "fmt"

// Account is the name of the ServiceAccount by which a logical cluster acts in a cluster, and of what joining makes for it, so that several
// logical clusters can share a cluster.
func Account(logicalCluster string) string {
	return "manifold-syncer-" + logicalCluster[:min(8, len(logicalCluster))]
}

// SecretsRole is the name of the ClusterRole that may read Secrets, and of the RoleBindings by which the syncer takes it in namespaces that are
// the logical cluster's.
func SecretsRole(logicalCluster string) string { return Account(logicalCluster) + "-secrets" }

// Secrets returns what that role may do.
func Secrets() []Right {
	return []Right{{Why: "secrets of Manifold's, in namespaces of its own", Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}}}
}

// Taking returns the rights by which the syncer takes that role. The admission policy beside them bounds for whom, and where.
func Taking(logicalCluster string) []Right {
	const group = "rbac.authorization.k8s.io"
	why := fmt.Sprintf("reading secrets in namespaces of its own: binding itself to ClusterRole %s there", SecretsRole(logicalCluster))
	return []Right{
		{Why: why, Group: group, Resources: []string{"rolebindings"}, Verbs: []string{"create", "delete"}},
		{Why: why, Group: group, Resources: []string{"clusterroles"}, Names: []string{SecretsRole(logicalCluster)}, Verbs: []string{"bind"}},
	}
}
