package grants

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// ownRights returns the syncer's rights to take the role that reads Secrets, and to read what joining has made for it, by name, so that it can
// be compared with what should be there.
func ownRights(logical types.UID) []rights.Right {
	const why = "whether its own rights are what they should be"
	get, name := []string{"get"}, Name(logical)
	return append(rights.Taking(string(logical)), []rights.Right{
		{
			Why: why, Group: rbacv1.GroupName, Resources: []string{"clusterroles", "clusterrolebindings"},
			Names: []string{
				name, KindsName(logical), PrioritiesName(logical), VolumesName(logical), PipelinesName(logical), rights.SecretsRole(string(logical)), auditName(logical),
			}, Verbs: get,
		},
		{
			Why: why, Group: "admissionregistration.k8s.io", Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			Names: []string{name, accountsName(logical), PrioritiesName(logical), VolumesName(logical), PodSecurityName(logical)}, Verbs: get,
		},
		{Why: why, Group: rbacv1.GroupName, Resources: []string{"roles", "rolebindings"}, Names: []string{name, auditName(logical)}, Verbs: get},
	}...)
}

// JoinRights returns what the credential that joins a cluster needs beside the rights that it hands on, in order to make, and
// to take back, what joining makes there.
func JoinRights() []rights.Right {
	const rbac, admission = rbacv1.GroupName, "admissionregistration.k8s.io"
	manage := []string{"get", "create", "patch", "delete"}
	return []rights.Right{
		{Why: "the system namespace", Resources: []string{"namespaces"}, Verbs: manage},
		{
			Why: "the syncer's identity", Resources: []string{"serviceaccounts"}, Verbs: manage,
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "what the syncer's token ends with", Resources: []string{"secrets"}, Verbs: []string{"list", "create", "delete"},
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "the syncer's token", Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"},
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "the rights to renew that, and to tell audits whose requests are", Group: rbac, Resources: []string{"roles", "rolebindings"}, Verbs: manage,
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{Why: "the syncer's role", Group: rbac, Resources: []string{"clusterroles", "clusterrolebindings"}, Verbs: manage},
		{
			Why: "the syncer's role in its own namespace", Group: rbac, Resources: []string{"roles", "rolebindings"}, Verbs: manage,
			Namespace: manifoldv1alpha1.SystemNamespace,
		},
		{
			Why: "keeping the syncer out of the namespaces of the system", Group: admission,
			Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}, Verbs: manage,
		},
		{Why: "asking the logical cluster about pods", Group: admission, Resources: []string{"mutatingwebhookconfigurations"}, Verbs: manage},
	}
}

// HandOnRights returns the rights that let a credential hand on rights which it does not have itself.
func HandOnRights() []rights.Right {
	return []rights.Right{{
		Why: "handing on rights", Group: rbacv1.GroupName, Resources: []string{"clusterroles", "roles"}, Verbs: []string{"bind", "escalate"},
	}}
}

// Given returns everything that joining hands on, with what is allowed beside. What names the logical cluster is left out while that is not known.
func Given(logical types.UID, beside Allowances) []rights.Right {
	out := slices.Concat(rights.Syncer(), kindRights(beside.Kinds))
	if beside.PriorityClassesUpTo != nil {
		out = append(out, priorityRights()...)
	}
	if beside.Volumes {
		out = append(out, rights.Volumes()...)
	}
	if beside.Pipelines {
		out = append(out, rights.Pipelines()...)
	}
	if logical != "" {
		out = slices.Concat(out, ownRights(logical), rights.Secrets(), auditRights(logical))
	}
	return out
}

// policyRules turns rows into the rules of a ClusterRole.
func policyRules(granted []rights.Right) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(granted))
	for _, r := range granted {
		rule := rbacv1.PolicyRule{Verbs: r.Verbs}
		if len(r.Paths) > 0 {
			rule.NonResourceURLs = r.Paths
		} else {
			rule.APIGroups, rule.Resources, rule.ResourceNames = []string{r.Group}, r.Resources, r.Names
		}
		rules = append(rules, rule)
	}
	return rules
}
