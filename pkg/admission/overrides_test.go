package admission

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// asked is an authorizer that lets one user override in one namespace, "" being all that is in none.
type asked struct{ user, namespace string }

func (a asked) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	if of.GetUser().GetName() == a.user && of.GetNamespace() == a.namespace && of.GetVerb() == "override" && of.GetAPIGroup() == "manifold.dev" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (a asked) ConditionsAwareAuthorize(ctx context.Context, of authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, of))
}

func (asked) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", nil
}

func TestOverridesAreARightOfTheirOwn(t *testing.T) {
	policy := func(change ...func(*v1alpha1.PlacementPolicySpec)) *v1alpha1.PlacementPolicy {
		p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
		for _, c := range change {
			c(&p.Spec)
		}
		return p
	}
	wide := func(p *v1alpha1.PlacementPolicy) *v1alpha1.ClusterPlacementPolicy {
		return &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: p.Spec}}
	}
	privileged := func(s *v1alpha1.PlacementPolicySpec) {
		s.Overrides = []v1alpha1.Override{{StrategicMergePatch: `{"spec":{"template":{"spec":{"hostPID":true}}}}`}}
	}
	mirrored := func(s *v1alpha1.PlacementPolicySpec) {
		s.Overrides = []v1alpha1.Override{{Images: []v1alpha1.ImageOverride{{Registry: "mirror.example.com"}}}}
	}
	first := func(s *v1alpha1.PlacementPolicySpec) { s.Priority = 7 }
	others := func(s *v1alpha1.PlacementPolicySpec) {
		s.Workloads = &v1alpha1.WorkloadSelector{Kinds: []string{"Deployment"}}
	}
	elsewhere := wide(policy(mirrored))
	elsewhere.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	const detail = `spec.overrides: you need the right to "override" placementpolicies.manifold.dev in namespace "shop"`
	const wideDetail = `spec.overrides: you need the right to "override" clusterplacementpolicies.manifold.dev`
	for name, test := range map[string]struct {
		by          asked // the one who may
		object, old runtime.Object
		subresource string
		want        string // of the refusal
	}{
		"a policy without any is for everybody":              {object: policy(first)},
		"one with overrides is not":                          {object: policy(privileged), want: detail},
		"harmless ones are overrides as well":                {object: policy(mirrored), want: detail},
		"who has the right writes them":                      {by: asked{"jane", "shop"}, object: policy(privileged)},
		"a right elsewhere is none here":                     {by: asked{"jane", "farm"}, object: policy(privileged), want: detail},
		"somebody else's right is none":                      {by: asked{"joe", "shop"}, object: policy(privileged), want: detail},
		"the rest of a policy that has some may be changed":  {old: policy(mirrored), object: policy(mirrored, first)},
		"the overrides may not":                              {old: policy(mirrored), object: policy(privileged), want: detail},
		"nor be added":                                       {old: policy(first), object: policy(first, mirrored), want: detail},
		"nor be taken away":                                  {old: policy(mirrored), object: policy(), want: detail},
		"nor be turned on other workloads":                   {old: policy(mirrored), object: policy(mirrored, others), want: detail},
		"a policy without any may be turned on any workload": {old: policy(), object: policy(others)},
		"for all namespaces it takes a right in all":         {by: asked{"jane", "shop"}, object: wide(policy(mirrored)), want: wideDetail},
		"which somebody may have":                            {by: asked{"jane", ""}, object: wide(policy(mirrored))},
		"nor may they be turned on other namespaces":         {old: wide(policy(mirrored)), object: elsewhere, want: wideDetail},
		"a status changes none":                              {old: policy(), object: policy(mirrored), subresource: "status"},
		"other kinds have none":                              {object: &v1alpha1.Cluster{}},
	} {
		t.Run(name, func(t *testing.T) {
			operation, resource, namespace := admission.Update, "placementpolicies", "shop"
			if test.old == nil {
				operation = admission.Create
			}
			if _, is := test.object.(*v1alpha1.ClusterPlacementPolicy); is {
				resource, namespace = "clusterplacementpolicies", ""
			}
			p := &overrides{authorizer: test.by}
			err := p.Validate(t.Context(), admission.NewAttributesRecord(test.object, test.old, v1alpha1.SchemeGroupVersion.WithKind("PlacementPolicy"),
				namespace, "p", v1alpha1.SchemeGroupVersion.WithResource(resource), test.subresource, operation, nil, false,
				&user.DefaultInfo{Name: "jane"}), nil)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
