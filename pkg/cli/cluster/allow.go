package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// kindsName names the role, and its binding, that has the rights for custom kinds. It is apart from the role that joining applies whole, so
// that joining again keeps it.
func kindsName(logical types.UID) string { return syncerName(logical) + "-kinds" }

// parseKinds reads the values of --allow-kind: PLURAL.GROUP, or *.GROUP for all kinds of a group.
func parseKinds(values []string) ([]schema.GroupResource, error) {
	var out []schema.GroupResource
	for _, value := range values {
		kind := schema.ParseGroupResource(value)
		plural := len(validation.IsDNS1035Label(kind.Resource)) == 0 || kind.Resource == "*"
		switch {
		case !plural || len(validation.IsDNS1123Subdomain(kind.Group)) > 0:
			return nil, fmt.Errorf("--allow-kind %q: write the plural name of the kind and its group, such as widgets.example.com", value)
		case scheme.Scheme.IsGroupRegistered(kind.Group) || kind.Group == manifoldv1alpha1.GroupName || !strings.Contains(kind.Group, "."):
			return nil, fmt.Errorf("--allow-kind %q: only kinds of custom resources need this; group %q is not one of theirs", value, kind.Group)
		case !slices.Contains(out, kind):
			out = append(out, kind)
		}
	}
	return out, nil
}

// kindRights are the rights for custom kinds, one row for each group.
func kindRights(kinds []schema.GroupResource) []Right {
	byGroup := map[string][]string{}
	var groups []string
	for _, kind := range kinds {
		if byGroup[kind.Group] == nil {
			groups = append(groups, kind.Group)
		}
		byGroup[kind.Group] = append(byGroup[kind.Group], kind.Resource)
	}
	slices.Sort(groups)
	var out []Right
	for _, group := range groups {
		resources := byGroup[group]
		slices.Sort(resources)
		out = append(out, Right{
			Why: "custom resources", Group: group, Resources: slices.Compact(resources),
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		})
	}
	return out
}

// kindPieces are the role with the rights for custom kinds, and its binding.
func kindPieces(logical types.UID, kinds []schema.GroupResource) ([]piece, error) {
	meta, granted := metav1.ObjectMeta{Name: kindsName(logical), Labels: madeByManifold()}, kindRights(kinds)
	return assemble(meta.Name, []row{
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRole", resource: "clusterroles", why: "The custom kinds that it may manage, by --allow-kind.",
			object: &rbacv1.ClusterRole{ObjectMeta: meta, Rules: policyRules(granted)}, rights: granted,
		},
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRoleBinding", resource: "clusterrolebindings", why: "Gives it that.",
			object: &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
				Subjects:   syncerAlone(logical),
			},
		},
	})
}

// allow adds the rights for custom kinds to those that were given before.
func (p *physical) allow(ctx context.Context, logical types.UID, undo *undoStack) error {
	if len(p.kinds) == 0 {
		return nil
	}
	before, err := p.allowed(ctx, logical)
	if err != nil {
		return fmt.Errorf("read ClusterRole %s in the cluster: %w", kindsName(logical), err)
	}
	all, err := kindPieces(logical, append(before, p.kinds...))
	if err != nil {
		return err
	}
	for _, piece := range all {
		if err := p.apply(ctx, piece, undo); err != nil {
			return fmt.Errorf("apply %s in the cluster: %w", piece, err)
		}
	}
	return nil
}

// allowed returns the kinds that Manifold has been given rights for.
func (p *physical) allowed(ctx context.Context, logical types.UID) ([]schema.GroupResource, error) {
	role, err := p.client.RbacV1().ClusterRoles().Get(ctx, kindsName(logical), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []schema.GroupResource
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				out = append(out, schema.GroupResource{Group: group, Resource: resource})
			}
		}
	}
	return out, nil
}
