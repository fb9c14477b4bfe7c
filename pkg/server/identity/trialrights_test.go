package identity

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestTrialsMayDoNothingElse(t *testing.T) {
	trial := &user.DefaultInfo{Name: v1alpha1.TrialUser}
	for name, test := range map[string]struct {
		of   authorizer.AttributesRecord
		want authorizer.Decision
	}{
		"a pod":                  {authorizer.AttributesRecord{User: trial, Verb: "create", Resource: "pods", ResourceRequest: true}, authorizer.DecisionAllow},
		"no other kind":          {authorizer.AttributesRecord{User: trial, Verb: "create", Resource: "secrets", ResourceRequest: true}, authorizer.DecisionNoOpinion},
		"nor that of a group":    {authorizer.AttributesRecord{User: trial, Verb: "create", APIGroup: "metrics.k8s.io", Resource: "pods", ResourceRequest: true}, authorizer.DecisionNoOpinion},
		"nor into a running one": {authorizer.AttributesRecord{User: trial, Verb: "create", Resource: "pods", Subresource: "exec", ResourceRequest: true}, authorizer.DecisionNoOpinion},
		"nor another verb":       {authorizer.AttributesRecord{User: trial, Verb: "delete", Resource: "pods", ResourceRequest: true}, authorizer.DecisionNoOpinion},
		"nor another user":       {authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "create", Resource: "pods", ResourceRequest: true}, authorizer.DecisionNoOpinion},
	} {
		if got, _, err := allowance(trialsTry).Authorize(t.Context(), test.of); got != test.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
}
