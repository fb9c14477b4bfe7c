package physical

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// Finding is what came of comparing one object in a cluster with what joining makes.
type Finding struct {
	// What names the object.
	What string
	// Unread says why it was not compared, "" if it was.
	Unread string
	// Differs are the differences, a line for each; none if there is none.
	Differs []string
}

// Compare looks at everything that joining makes in the cluster for a logical cluster, which says what it takes to be allowed there, and how it is
// asked about pods; and at what else its ServiceAccount is given.
func (c *Cluster) Compare(ctx context.Context, logical types.UID, said manifoldv1alpha1.ClusterAllows, how *grants.PodWebhook) ([]Finding, error) {
	all, err := c.expected(ctx, logical, said, how)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, piece := range all {
		found, err := c.look(ctx, piece)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", piece, err)
		}
		out = append(out, found)
	}
	further, err := c.furtherBindings(ctx, logical, all)
	if err != nil {
		return nil, err
	}
	return append(out, further), nil
}

// expected returns what joining would make in the cluster as it allows things now. What the credential may not read of that counts as not allowed.
func (c *Cluster) expected(ctx context.Context, logical types.UID, said manifoldv1alpha1.ClusterAllows, how *grants.PodWebhook) ([]grants.Piece, error) {
	kinds, err := c.Kinds(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ClusterRole %s: %w", grants.KindsName(logical), err)
	}
	upTo, err := c.PriorityClassesUpTo(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ClusterRole %s: %w", grants.PrioritiesName(logical), err)
	}
	volumes, err := c.made(ctx, grants.VolumesName(logical))
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ClusterRole %s: %w", grants.VolumesName(logical), err)
	}
	pipelines, err := c.made(ctx, grants.PipelinesName(logical))
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ClusterRole %s: %w", grants.PipelinesName(logical), err)
	}
	level, err := c.PodSecurity(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ValidatingAdmissionPolicy %s: %w", grants.PodSecurityName(logical), err)
	}
	if said.PodSecurity != "" {
		level = said.PodSecurity // whatever has become of it in the cluster
	}
	webhook, err := c.expectedWebhook(ctx, logical, said, how)
	if err != nil {
		return nil, err
	}
	custom := grants.CustomOnly(kinds)
	all, err := grants.All(logical, grants.Allowances{
		Kinds: custom, PriorityClassesUpTo: upTo, Volumes: volumes || said.Volumes, Pipelines: pipelines || said.Pipelines, PodWebhook: webhook, PodSecurity: level,
	})
	if err != nil || len(kinds) == 0 || len(custom) > 0 {
		return all, err
	}
	none, err := grants.ForKinds(logical, nil) // the role is there, and grants what no flag would have added
	return append(all, none...), err
}

// look compares one piece with what the cluster has.
func (c *Cluster) look(ctx context.Context, piece grants.Piece) (Finding, error) {
	live, err := c.dynamic.Resource(piece.Resource).Namespace(piece.Object.GetNamespace()).Get(ctx, piece.Object.GetName(), metav1.GetOptions{})
	out := Finding{What: piece.String()}
	switch {
	case apierrors.IsNotFound(err):
		out.Differs = []string{"missing"}
		return out, nil
	case apierrors.IsForbidden(err):
		out.Unread = "the credential may not read it"
		return out, nil
	case err != nil:
		return out, err
	}
	out.Differs, err = piece.Differences(live)
	return out, err
}

// homes notes the namespaces of a logical cluster, where its syncer takes the right to read Secrets.
func (c *Cluster) homes(ctx context.Context, logical types.UID, into map[string]bool) error {
	list, err := c.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: manifoldv1alpha1.LabelLogicalCluster + "=" + string(logical)})
	if err != nil {
		return err
	}
	for _, namespace := range list.Items {
		into[namespace.Name] = true
	}
	return nil
}

// furtherBindings looks for bindings that are not of joining's making and give the syncer's ServiceAccount more.
func (c *Cluster) furtherBindings(ctx context.Context, logical types.UID, all []grants.Piece) (Finding, error) {
	out := Finding{What: "Other bindings of ServiceAccount " + manifoldv1alpha1.SystemNamespace + "/" + grants.Name(logical)}
	known := map[string]bool{}
	for _, piece := range all {
		known[piece.String()] = true
	}
	homes := map[string]bool{}
	look := func(kind, namespace, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		what := kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
		taken := namespace != "" && role.Kind == "ClusterRole" && role.Name == rights.SecretsRole(string(logical)) && homes[namespace]
		if !known[what] && !taken && grants.BindsSyncer(logical, subjects) {
			out.Differs = append(out.Differs, fmt.Sprintf("more than needed: %s gives it %s %s", what, role.Kind, role.Name))
		}
	}
	bindings, err := c.client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err == nil {
		err = c.homes(ctx, logical, homes)
	}
	if err == nil {
		for _, b := range bindings.Items {
			look("ClusterRoleBinding", "", b.Name, b.RoleRef, b.Subjects)
		}
		var within *rbacv1.RoleBindingList
		if within, err = c.client.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
			for _, b := range within.Items {
				look("RoleBinding", b.Namespace, b.Name, b.RoleRef, b.Subjects)
			}
		}
	}
	if apierrors.IsForbidden(err) {
		out.Unread, err = "the credential may not list them", nil
	}
	return out, err
}
