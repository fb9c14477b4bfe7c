package bootstrap

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// pipelineRoles let those who may view a namespace see its pipelines, and those who may edit it define some: whoever adds a target needs the right to see what
// is there besides, which is a role of its own for whoever may not view the namespace as a whole. To promote, pause and resume is for admins of the namespace
// and for who is given the role alone, as it is to approve releases. Nobody but Manifold writes statuses.
func pipelineRoles() []*rbacv1.ClusterRole {
	kinds := func(verbs []string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			{APIGroups: []string{weave.Group, weave.OlderGroup}, Resources: []string{weave.Resource}, Verbs: verbs},
			{APIGroups: []string{weave.GitopsClusters.Group}, Resources: []string{weave.GitopsClusters.Resource}, Verbs: verbs},
		}
	}
	acts := rbacv1.PolicyRule{APIGroups: []string{delivery.GroupName}, Resources: []string{"pipelines/promote", "pipelines/pause", "pipelines/resume"}, Verbs: []string{"create"}}
	related := rbacv1.PolicyRule{APIGroups: []string{delivery.GroupName}, Resources: []string{"pipelines/related"}, Verbs: []string{"get"}}
	var shown []rbacv1.PolicyRule
	for _, kind := range weave.Workloads {
		shown = append(shown, rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{kind.Resource}, Verbs: look})
	}
	return []*rbacv1.ClusterRole{
		aggregated(role("manifold-pipelines-edit", kinds(slices.Concat(look, change))...), "edit", "admin"),
		aggregated(role("manifold-pipelines-view", append(kinds(look), related)...), "view", "edit", "admin"),
		aggregated(role("manifold-pipelines-promote", append(kinds(look)[:1], acts, related)...), "admin"),
		role("manifold-pipelines-targets", shown...),
	}
}
