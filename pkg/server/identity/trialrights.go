package identity

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// trialAuthorizer lets trials make pods, and nothing else. It never denies.
type trialAuthorizer struct{}

// Authorize implements authorizer.Authorizer.
func (trialAuthorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() != nil && a.GetUser().GetName() == v1alpha1.TrialUser && a.IsResourceRequest() && a.GetVerb() == "create" &&
		a.GetAPIGroup() == "" && a.GetResource() == "pods" && a.GetSubresource() == "" {
		return authorizer.DecisionAllow, "overrides are tried", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer. The right depends on nothing that a condition could test.
func (a trialAuthorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer.
func (trialAuthorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
