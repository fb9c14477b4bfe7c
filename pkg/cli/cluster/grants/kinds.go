package grants

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// KindsName names the role, and its binding, that has the rights for custom kinds. It is apart from the role that joining applies whole, so
// that joining again keeps it.
func KindsName(logical types.UID) string { return Name(logical) + "-kinds" }

// ParseKinds reads the values of --allow-kind: PLURAL.GROUP, or *.GROUP for all kinds of a group.
func ParseKinds(values []string) ([]schema.GroupResource, error) {
	var out []schema.GroupResource
	for _, value := range values {
		kind := schema.ParseGroupResource(value)
		plural := len(validation.IsDNS1035Label(kind.Resource)) == 0 || kind.Resource == "*"
		switch {
		case !plural || len(validation.IsDNS1123Subdomain(kind.Group)) > 0:
			return nil, fmt.Errorf("--allow-kind %q: write the plural name of the kind and its group, such as widgets.example.com", value)
		case scheme.Scheme.IsGroupRegistered(kind.Group) || manifoldv1alpha1.IsOwnGroup(kind.Group) || !strings.Contains(kind.Group, "."):
			return nil, fmt.Errorf("--allow-kind %q: only kinds of custom resources need this; group %q is not one of theirs", value, kind.Group)
		case !slices.Contains(out, kind):
			out = append(out, kind)
		}
	}
	return out, nil
}

// kindRights are the rights for custom kinds, one row for each group.
func kindRights(kinds []schema.GroupResource) []rights.Right {
	byGroup := map[string][]string{}
	var groups []string
	for _, kind := range kinds {
		if byGroup[kind.Group] == nil {
			groups = append(groups, kind.Group)
		}
		byGroup[kind.Group] = append(byGroup[kind.Group], kind.Resource)
	}
	slices.Sort(groups)
	var out []rights.Right
	for _, group := range groups {
		resources := byGroup[group]
		slices.Sort(resources)
		out = append(out, rights.Right{
			Why: "custom resources", Group: group, Resources: slices.Compact(resources),
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		})
	}
	return out
}

// ForKinds returns the role with the rights for custom kinds, and its binding.
func ForKinds(logical types.UID, of []schema.GroupResource) ([]Piece, error) {
	return assemble(kinds(logical, of)...)
}

func kinds(logical types.UID, of []schema.GroupResource) []row {
	meta := metav1.ObjectMeta{Name: KindsName(logical), Labels: Labels()}
	return []row{
		clusterRole(meta, kindRights(of), "The custom kinds that it may manage, by --allow-kind."),
		clusterRoleBinding(meta, logical),
	}
}

// KindsIn returns the kinds that the role of that name gives rights for.
func KindsIn(role *rbacv1.ClusterRole) []schema.GroupResource {
	var out []schema.GroupResource
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				out = append(out, schema.GroupResource{Group: group, Resource: resource})
			}
		}
	}
	return out
}

// CustomOnly leaves out what no --allow-kind would have added, so that it shows as more than is needed.
func CustomOnly(kinds []schema.GroupResource) []schema.GroupResource {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind schema.GroupResource) bool {
		_, err := ParseKinds([]string{kind.String()})
		return err != nil
	})
}
