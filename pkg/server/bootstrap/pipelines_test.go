package bootstrap

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestW13AndW28DefiningPipelinesPromotingAndAddingWorkloadsAreRightsOfTheirOwn(t *testing.T) {
	const to = "rbac.authorization.k8s.io/aggregate-to-"
	const newer, older, ours = "pipelines.weave.works", "pipelines.wego.weave.works", "delivery.manifold.dev"
	got := map[string]*rbacv1.ClusterRole{}
	for _, role := range pipelineRoles() {
		got[role.Name] = role
	}
	for name, test := range map[string]struct {
		into          []string
		may, mayNever []string
	}{
		"manifold-pipelines-view": {
			into: []string{to + "admin", to + "edit", to + "view"},
			may:  []string{"get pipelines." + newer, "watch pipelines." + older, "list gitopsclusters.gitops.weave.works", "get pipelines/related." + ours},
			mayNever: []string{
				"create pipelines." + newer, "update pipelines." + older, "delete gitopsclusters.gitops.weave.works", "create pipelines/promote." + ours, "create pipelines/pause." + ours,
				"list deployments.apps",
			},
		},
		"manifold-pipelines-edit": {
			into: []string{to + "admin", to + "edit"},
			may:  []string{"create pipelines." + newer, "patch pipelines." + older, "delete gitopsclusters.gitops.weave.works"},
			mayNever: []string{
				"update pipelines/status." + newer, "patch pipelines/status." + older, "update gitopsclusters/status.gitops.weave.works", "create pipelines/promote." + ours,
				"create pipelines/pause." + ours, "create pipelines/resume." + ours, "create deployments.apps", "list deployments.apps",
			},
		},
		"manifold-pipelines-promote": {
			into:     []string{to + "admin"},
			may:      []string{"create pipelines/promote." + ours, "create pipelines/pause." + ours, "create pipelines/resume." + ours, "get pipelines." + newer},
			mayNever: []string{"create pipelines." + newer, "update pipelines." + older, "update pipelines/status." + newer, "create releases/approve." + ours},
		},
		"manifold-pipelines-targets": {
			into: nil,
			may: []string{
				"list deployments.apps", "list statefulsets.apps", "list daemonsets.apps", "list cronjobs.batch", "list applications." + ours,
				"list helmreleases.helm.toolkit.fluxcd.io", "list kustomizations.kustomize.toolkit.fluxcd.io",
			},
			mayNever: []string{"create deployments.apps", "patch applications." + ours, "list secrets.", "create pipelines." + newer},
		},
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
				verb, of, _ := strings.Cut(what, " ")
				resource, group, _ := strings.Cut(of, ".")
				return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Verbs, verb) && slices.Contains(r.Resources, resource) && slices.Contains(r.APIGroups, group)
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
