package identity

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// allowance says why a request is allowed, "" if it is not. It never denies: what it does not know is left to RBAC, which knows nothing of the
// identities of this process. Who impersonates one of them has no more than that one.
type allowance func(context.Context, authorizer.Attributes) string

// Authorize implements authorizer.Authorizer.
func (f allowance) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() == nil || !a.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if why := f(ctx, a); why != "" {
		return authorizer.DecisionAllow, why, nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer. The rights depend on nothing that a condition could test.
func (f allowance) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(f.Authorize(ctx, a))
}

// EvaluateConditions implements authorizer.Authorizer.
func (allowance) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

var syncerRights = map[string]map[string]bool{
	"pods":                   {"create": true, "update": true, "delete": true},
	"persistentvolumeclaims": {"create": true, "update": true, "patch": true, "delete": true},
	"events":                 {"create": true, "update": true},
}

// syncersReport gives a syncer what it needs to report what runs in its cluster, and nothing else. What exactly a syncer may write is a question
// of admission, which sees the objects; see package mirrors.
func syncersReport(_ context.Context, a authorizer.Attributes) string {
	if _, ok := SyncerCluster(a.GetUser()); !ok || a.GetAPIGroup() != corev1.GroupName || a.GetSubresource() != "" {
		return ""
	}
	if _, refused := projection.NamespaceRefusal(a.GetNamespace()); refused || !syncerRights[a.GetResource()][a.GetVerb()] {
		return ""
	}
	return "a syncer reports what runs in its cluster"
}

// trialsTry lets trials make pods, and nothing else.
func trialsTry(_ context.Context, a authorizer.Attributes) string {
	if a.GetUser().GetName() == v1alpha1.TrialUser && a.GetVerb() == "create" &&
		a.GetAPIGroup() == corev1.GroupName && a.GetResource() == "pods" && a.GetSubresource() == "" {
		return "overrides are tried"
	}
	return ""
}

// controllersOf lets the controllers of a logical cluster do what is written down for each.
func controllersOf(logicalCluster string) allowance {
	return func(ctx context.Context, a authorizer.Attributes) string {
		c, ok := controllers[a.GetUser().GetName()]
		switch {
		case !ok:
			return ""
		case c.allows(a):
			return "a controller of Manifold does its own work"
		}
		refusals.WithContext(ctx).
			WithLabelValues(logicalCluster, a.GetUser().GetName(), a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource()).Inc()
		klog.FromContext(ctx).Error(nil, LacksRight, "logicalCluster", logicalCluster, "user", a.GetUser().GetName(), "verb", a.GetVerb(), "group", a.GetAPIGroup(),
			"resource", a.GetResource(), "subresource", a.GetSubresource(), "namespace", a.GetNamespace(), "name", a.GetName())
		return ""
	}
}

// LacksRight is logged when a controller asks for what is not written down for it, which is a mistake of ours. End-to-end tests look for it.
const LacksRight = "A controller of Manifold asks for what it has no right to"

// refusals counts the same for whoever does not read logs.
var refusals = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace: "manifold", Subsystem: "controllers", Name: "refused_requests_total", StabilityLevel: metrics.ALPHA,
	Help: "Requests of Manifold's own controllers for which they have no right. Any is a mistake in Manifold.",
}, []string{"logical_cluster", "user", "verb", "group", "resource", "subresource"})

func init() { legacyregistry.MustRegister(refusals) }
