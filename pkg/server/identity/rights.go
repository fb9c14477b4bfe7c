package identity

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// controllerRights are those of our controllers that need no others. What clusters report ends in a status, and nothing that a cluster could
// bring the controller to do reaches a Secret, a role, or the spec of what a user made by way of a new object.
var controllerRights = map[string][]rbacv1.PolicyRule{
	v1alpha1.SummaryUser: {
		may("update", appsv1.GroupName, "deployments/status", "statefulsets/status", "daemonsets/status", "replicasets/status"),
		may("update", corev1.GroupName, "replicationcontrollers/status", "services/status", "persistentvolumeclaims/status"),
		may("update", batchv1.GroupName, "jobs/status"),
		may("update", networkingv1.GroupName, "ingresses/status"),
		// It takes our finalizer off what no cluster holds any more, and gives a ReplicaSet to who has taken it over.
		may("patch", appsv1.GroupName, "deployments", "statefulsets", "daemonsets", "replicasets"),
		may("patch", corev1.GroupName, "replicationcontrollers", "persistentvolumeclaims"),
		may("patch", batchv1.GroupName, "jobs"),
		may("create", appsv1.GroupName, "replicasets", "controllerrevisions"),
		may("update", appsv1.GroupName, "replicasets", "controllerrevisions"),
		may("delete", appsv1.GroupName, "replicasets", "controllerrevisions"),
		may("delete", corev1.GroupName, "pods"), // mirrors of what was lost
	},
	v1alpha1.PlacementUser: {
		may("patch", appsv1.GroupName, "deployments", "statefulsets", "daemonsets", "replicasets"),
		may("patch", corev1.GroupName, "replicationcontrollers", "pods", "persistentvolumeclaims"),
		may("patch", batchv1.GroupName, "jobs"),
		may("update", corev1.GroupName, "pods/status"), // that no cluster can run them
		may("update", v1alpha1.GroupName, "placementpolicies/status", "clusterplacementpolicies/status"),
	},
}

func may(verb, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: resources}
}

// controllerAuthorizer gives these controllers their rights. It never denies: what it does not know is left to RBAC, which knows nothing of
// them. Who impersonates one of them has no more.
type controllerAuthorizer struct{}

// Authorize implements authorizer.Authorizer.
func (controllerAuthorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() == nil || !a.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if rules := controllerRights[a.GetUser().GetName()]; len(rules) == 0 || !rbac.RulesAllow(a, rules...) {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "a controller of Manifold does its own work", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer. The rights depend on nothing that a condition could test.
func (a controllerAuthorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer.
func (controllerAuthorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
