// Package bootstrap makes the objects that a logical cluster starts with.
package bootstrap

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldconfig "github.com/manifold-dev/manifold/config"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/keys"
)

// Make makes the objects that a logical cluster starts with. What exists is left as it is, so admins may edit it, but for what tells of
// this process; the default
// policy is not put back once it is deleted, since the system namespace, made last, tells that this has been done.
func Make(ctx context.Context, kube kubernetes.Interface, manifold versioned.Interface, s Settings) error {
	// A new server makes kube-system some time after it serves. The controllers read it at once.
	if err := makeNamespace(ctx, kube, metav1.NamespaceSystem); err != nil {
		return err
	}
	rbac, flows := kube.RbacV1(), kube.FlowcontrolV1()
	for _, role := range slices.Concat(policyRoles(), deliveryRoles(), pipelineRoles(), []*rbacv1.ClusterRole{metricsRole()}) {
		if err := ensure(ctx, rbac.ClusterRoles(), role); err != nil {
			return fmt.Errorf("make ClusterRole %s: %w", role.Name, err)
		}
	}
	for _, binding := range []*rbacv1.ClusterRoleBinding{adminBinding(), versionsBinding()} {
		if err := ensure(ctx, rbac.ClusterRoleBindings(), binding); err != nil {
			return fmt.Errorf("make ClusterRoleBinding %s: %w", binding.Name, err)
		}
	}
	if err := ensure(ctx, flows.PriorityLevelConfigurations(), syncerPriorityLevel()); err != nil {
		return fmt.Errorf("make PriorityLevelConfiguration %s: %w", syncerFlows, err)
	}
	if err := ensureSyncerFlowSchema(ctx, flows.FlowSchemas()); err != nil {
		return fmt.Errorf("make FlowSchema %s: %w", syncerFlows, err)
	}
	if err := ensure(ctx, flows.FlowSchemas(), controllerFlowSchema()); err != nil {
		return fmt.Errorf("make FlowSchema %s: %w", controllerFlowSchema().Name, err)
	}
	if err := publish(ctx, kube, s); err != nil {
		return err
	}

	_, err := kube.CoreV1().Namespaces().Get(ctx, v1alpha1.SystemNamespace, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	policy, err := manifoldconfig.DefaultPolicy()
	if err != nil {
		return err
	}
	if err := ensure(ctx, manifold.ManifoldV1alpha1().ClusterPlacementPolicies(), policy); err != nil {
		return fmt.Errorf("make the default policy: %w", err)
	}
	return makeNamespace(ctx, kube, v1alpha1.SystemNamespace)
}

func makeNamespace(ctx context.Context, kube kubernetes.Interface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := ensure(ctx, kube.CoreV1().Namespaces(), namespace); err != nil {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return nil
}

// getCreator is a typed client of one kind.
type getCreator[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// ensure makes an object unless it is there. It looks first: an attempt passes admission before it turns out that the name is taken, and a
// webhook whose pod runs in a cluster cannot be reached before the start is through.
func ensure[T metav1.Object](ctx context.Context, client getCreator[T], object T) error {
	if _, err := client.Get(ctx, object.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	_, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// adminBinding gives the administrator's certificate its rights.
func adminBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: keys.AdminsGroup},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: keys.AdminsGroup}},
	}
}

// policyRoles let those who may edit or view a namespace do so with its placement policies as well. The right to override is for who is given it
// by name: what overrides make of a workload is not what its users may write. So is that to the views of clusters.
func policyRoles() []*rbacv1.ClusterRole {
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"placementpolicies"}, Verbs: verbs}
	}
	return []*rbacv1.ClusterRole{
		aggregated(role("manifold:edit", rule(change...)), "edit", "admin"),
		aggregated(role("manifold:view", rule(look...)), "view", "edit", "admin"),
		role("manifold:override", rule(v1alpha1.VerbOverride)),
		role("manifold:use-views", rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clusters/" + v1alpha1.SubresourceView}, Verbs: []string{v1alpha1.VerbUse},
		}),
		aggregated(role("manifold:fleet-view", fleetRules()...), "view", "edit", "admin"),
	}
}

// fleetRules let those who may view workloads see how these stand in all clusters. The rights to workloads themselves do not cover subresources.
func fleetRules() (out []rbacv1.PolicyRule) {
	for _, kind := range projection.Workloads() {
		out = append(out, rbacv1.PolicyRule{
			APIGroups: []string{kind.Resource.Group}, Resources: []string{kind.Resource.Resource + "/" + v1alpha1.SubresourceFleet}, Verbs: []string{"get"},
		})
	}
	return out
}

// Verbs of those who may view objects, and of those who may edit them.
var (
	look   = []string{"get", "list", "watch"}
	change = []string{"create", "update", "patch", "delete", "deletecollection"}
)

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Rules: rules}
}

// aggregated makes a role a part of roles that Kubernetes has for users.
func aggregated(role *rbacv1.ClusterRole, into ...string) *rbacv1.ClusterRole {
	for _, target := range into {
		role.Labels["rbac.authorization.k8s.io/aggregate-to-"+target] = "true"
	}
	return role
}

// metricsRole lets those who may view a namespace see what its pods use, under the name that it has where metrics-server is installed.
func metricsRole() *rbacv1.ClusterRole {
	return aggregated(role("system:aggregated-metrics-reader", rbacv1.PolicyRule{
		APIGroups: []string{metricsv1beta1.GroupName}, Resources: []string{"pods", "nodes"}, Verbs: look,
	}), "view", "edit", "admin")
}

// controllerFlowSchema keeps our controllers out of the queues of users, as Kubernetes does with its own.
func controllerFlowSchema() *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "manifold-controllers"},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "exempt"},
			MatchingPrecedence:         100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: v1alpha1.ControllersGroup},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}
}
